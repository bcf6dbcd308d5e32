import { Cron } from "croner";
import { dueTimes } from "#apiserver/simulate/jobs/cron-jobs.js";
import { assert, suite } from "../../../support/suite.js";

const at = (time: string) => new Date(`2026-01-05T${time}Z`);
const shown = ({ last, next }: { last: Date | undefined; next: Date | undefined }) => [
  last?.toISOString().slice(11, 19),
  next?.toISOString().slice(11, 19),
];

/** Counts the times that schedules are asked for until it is disposed of. */
function countSteps() {
  const { nextRun } = Cron.prototype;
  let count = 0;
  Cron.prototype.nextRun = function (...args) {
    count++;
    return nextRun.apply(this, args);
  };
  return {
    /** Returns the steps since the last call. */
    take() {
      const taken = count;
      count = 0;
      return taken;
    },
    [Symbol.dispose]: () => void (Cron.prototype.nextRun = nextRun),
  };
}

suite("CronJob schedule", (test) => {
  test("is due at the last scheduled time that has passed", () => {
    const times = { schedule: "*/5 * * * *" };
    assert.equal(shown(dueTimes(times, at("10:01:00"), at("10:04:59"))), [undefined, "10:05:00"]);
    assert.equal(shown(dueTimes(times, at("10:01:00"), at("10:05:00"))), ["10:05:00", "10:10:00"]);
    assert.equal(shown(dueTimes(times, at("10:01:00"), at("10:23:00"))), ["10:20:00", "10:25:00"]);
    assert.equal(shown(dueTimes(times, at("10:05:00"), at("10:06:00"))), [undefined, "10:10:00"]);
  });

  test("skips a time that is older than startingDeadlineSeconds", () => {
    const times = { schedule: "0 * * * *", startingDeadlineSeconds: 60 };
    assert.equal(shown(dueTimes(times, at("09:30:00"), at("10:00:59"))), ["10:00:00", "11:00:00"]);
    assert.equal(shown(dueTimes(times, at("09:30:00"), at("10:01:01"))), [undefined, "11:00:00"]);
  });

  test("supports @every, @hourly, and time zones", () => {
    assert.equal(shown(dueTimes({ schedule: "@every 1h30m" }, at("01:00:00"), at("04:10:00"))), [
      "04:00:00",
      "05:30:00",
    ]);
    assert.equal(shown(dueTimes({ schedule: "@hourly" }, at("01:10:00"), at("02:00:01"))), ["02:00:00", "03:00:00"]);
    const inTokyo = { schedule: "0 12 * * *", timeZone: "Asia/Tokyo" };
    assert.equal(shown(dueTimes(inTokyo, at("02:00:00"), at("03:30:00"))), ["03:00:00", "03:00:00"]);
  });

  test("finds the last due time after six years of missed minutes in as many steps as after a day", () => {
    using steps = countSteps();
    const times = { schedule: "* * * * *" };
    assert.equal(shown(dueTimes(times, new Date("2026-01-04T10:00:30Z"), at("10:00:30"))), ["10:00:00", "10:01:00"]);
    const afterDay = steps.take();
    assert.ok(afterDay > 0 && afterDay < 24 * 60, `${afterDay} steps`);
    const { last } = dueTimes(times, new Date("2020-01-01T00:00:00Z"), at("10:00:30"));
    assert.is(last?.toISOString(), "2026-01-05T10:00:00.000Z");
    assert.is(steps.take(), afterDay);
  });
});
