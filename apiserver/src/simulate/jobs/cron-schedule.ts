import { Cron } from "croner";

/** What is read from the spec of a CronJob, as far as it says when. */
export interface CronTimes {
  schedule: string;
  timeZone?: string;
  startingDeadlineSeconds?: number;
}

/** When a CronJob was last due, and when it is due next. */
export interface Due {
  last: Date | undefined;
  next: Date | undefined;
}

const INTERVAL = /^@every (?=.)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
/** More missed times than these are not looked through. */
const MAX_MISSED = 100;

/** Finds the last time after `since`, up to now, at which a schedule was due; `undefined` if there was none. */
export function dueTimes({ schedule, timeZone, startingDeadlineSeconds }: CronTimes, since: Date, now: Date): Due {
  const earliest =
    startingDeadlineSeconds === undefined
      ? since
      : new Date(Math.max(since.getTime(), now.getTime() - startingDeadlineSeconds * 1000));
  const nextAfter = nextOf(schedule, timeZone, since);
  let last: Date | undefined;
  let next = nextAfter(earliest);
  for (let count = 0; next !== undefined && next <= now; count++) {
    last = next;
    // Nobody waits for what would have been started long ago.
    next = count === MAX_MISSED ? nextAfter(new Date(now.getTime() - 60_000)) : nextAfter(next);
    if (count > 2 * MAX_MISSED) break;
  }
  return { last, next };
}

function nextOf(schedule: string, timeZone: string | undefined, since: Date): (date: Date) => Date | undefined {
  const interval = INTERVAL.exec(schedule);
  if (interval !== null) {
    const [hours, minutes, seconds] = interval.slice(1).map((part) => Number(part ?? 0));
    const ms = ((hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1000;
    return (date) => new Date(since.getTime() + (Math.floor((date.getTime() - since.getTime()) / ms) + 1) * ms);
  }
  const cron = new Cron(schedule, { paused: true, timezone: timeZone ?? "Etc/UTC" });
  return (date) => cron.nextRun(date) ?? undefined;
}
