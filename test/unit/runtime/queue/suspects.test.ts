// Primaries whose functions blocked the event loop: they hold up no other primary, and none of them waits for ever.
import { Suspects } from "#runtime/queue/work-queue.js";
import { assert, suite } from "../../../support/suite.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { createBed, failureOf, type BedOptions } from "./controller-bed.js";

const silent = () => {};

function createWorld(controllers: readonly string[] = ["page"]) {
  const clock = new VirtualClock();
  const warnings: string[] = [];
  const logger = {
    debug: silent,
    info: silent,
    warn: (_: object, text: string) => void warnings.push(text),
    error: silent,
  };
  const suspects = new Suspects({ controllers, clock, logger });
  const open = (options: BedOptions = {}) => createBed({ shared: { clock, suspects }, isStarted: false, ...options });
  return { clock, suspects, warnings, open };
}

function names({ started }: Pick<ReturnType<typeof createBed>, "started">): readonly string[] {
  return started.map(({ key }) => key.replace("home/", ""));
}

suite("suspects", (test) => {
  test("are reconciled after all other primaries, one at a time", async () => {
    const { suspects, open, warnings } = createWorld();
    for (const name of ["bad-1", "bad-2"]) suspects.add("page", `home/${name}`);
    const bed = open();
    const finish = bed.hold();
    for (const name of ["bad-1", "bad-2", "one", "two"]) bed.observe({ name }, { isInitial: true });
    bed.controller.start();
    await bed.settle();
    assert.equal(names(bed), ["one", "two"]);
    assert.is(bed.controller.counts().queued, 2);
    await finish();
    assert.equal(names(bed), ["one", "two"], "one of the others is in progress");
    await finish();
    assert.equal(names(bed), ["one", "two", "bad-1"]);
    bed.observe({ name: "three" });
    await bed.settle();
    assert.equal(names(bed), ["one", "two", "bad-1"], "alone");
    await finish();
    await finish();
    await finish();
    assert.equal(names(bed), ["one", "two", "bad-1", "three", "bad-2"]);
    assert.equal(warnings, [
      'primary "home/bad-1" of controller "page" is reconciled last: its functions blocked the event loop before',
      'primary "home/bad-2" of controller "page" is reconciled last: its functions blocked the event loop before',
    ]);
    assert.equal(suspects.all, []);
  });

  test("wait for other controllers, also for one that has not started", async () => {
    const { suspects, open } = createWorld(["page", "site"]);
    suspects.add("page", "home/bad");
    const [pages, sites] = [open(), open({ name: "site" })];
    pages.observe({ name: "bad" }, { isInitial: true });
    sites.observe({ name: "one" }, { isInitial: true });
    pages.controller.start();
    await pages.settle();
    assert.equal(names(pages), []);
    const finish = sites.hold();
    sites.controller.start();
    await pages.settle();
    assert.equal([names(pages), names(sites)], [[], ["one"]]);
    await finish();
    await pages.advance(1_000);
    assert.equal(names(pages), ["bad"]);
  });

  test("start after a minute in an operator that is never idle", async () => {
    const { suspects, open } = createWorld();
    suspects.add("page", "home/bad");
    const bed = open();
    bed.hold();
    for (const name of ["bad", "slow"]) bed.observe({ name }, { isInitial: true });
    bed.controller.start();
    await bed.settle();
    await bed.advance(59_000);
    assert.equal(names(bed), ["slow"]);
    await bed.advance(2_000);
    assert.equal(names(bed), ["slow", "bad"]);
  });

  test("delay other primaries by at most 5 s", async () => {
    const { suspects, open } = createWorld();
    suspects.add("page", "home/bad");
    const bed = open();
    bed.hold();
    bed.observe({ name: "bad" }, { isInitial: true });
    bed.controller.start();
    await bed.settle();
    bed.observe({ name: "one" });
    await bed.advance(4_000);
    assert.equal(names(bed), ["bad"]);
    await bed.advance(1_000);
    assert.equal(names(bed), ["bad", "one"]);
  });

  test("are delayed by 30 s if they blocked twice, unless they are edited", async () => {
    const { suspects, open, warnings } = createWorld();
    for (const name of ["bad", "bad", "edited", "edited", "beside"]) suspects.add("page", `home/${name}`);
    const bed = open();
    for (const name of ["bad", "edited", "beside"]) bed.observe({ name }, { isInitial: true });
    bed.controller.start();
    await bed.settle();
    assert.equal(names(bed), ["beside"], "it blocked once");
    assert.match(
      warnings.join(),
      'home/bad" of controller "page" is reconciled last, in 30 s at the earliest, or when it is edited',
    );
    bed.observe({ name: "edited" });
    await bed.settle();
    assert.equal(names(bed), ["beside", "edited"]);
    await bed.advance(29_000);
    assert.equal(names(bed), ["beside", "edited"]);
    await bed.advance(2_000);
    assert.equal(names(bed), ["beside", "edited", "bad"]);
  });

  test("are kept while they fail or block, and removed after a success or a deletion", async () => {
    const { suspects, open } = createWorld();
    for (const name of ["bad", "gone", "never"]) suspects.add("page", `home/${name}`);
    const bed = open();
    bed.observe({ name: "bad" }, { isInitial: true });
    bed.observe({ name: "gone" }, { isInitial: true });
    bed.controller.start();
    const known = () => suspects.all.map(({ primary }) => primary);
    assert.equal(known(), ["home/bad", "home/gone"], "one does not exist");
    bed.observeDeletion("home/gone");
    assert.equal(known(), ["home/bad"]);
    bed.respond(() => failureOf());
    await bed.settle();
    assert.equal(known(), ["home/bad"]);
    const finish = bed.hold();
    await bed.advance(2_000);
    await bed.advance(2_000);
    suspects.add("page", "home/bad");
    await finish();
    assert.equal(suspects.all, [{ controller: "page", primary: "home/bad", stalls: 2 }]);
  });

  test("of a stopped controller delay nothing", async () => {
    const { suspects, open, clock } = createWorld();
    suspects.add("page", "home/bad");
    const bed = open();
    bed.hold();
    bed.observe({ name: "bad" }, { isInitial: true });
    bed.controller.start();
    await bed.settle();
    void bed.controller.stop(0);
    await bed.advance(0);
    assert.is(suspects.isReconciling, false);
    assert.is(clock.nextDueAt, undefined);
  });

  test("are read from the annotation, ignoring invalid entries and those the leader resolved", () => {
    const { suspects } = createWorld();
    for (const forged of [
      "no JSON",
      "7",
      '[7, null, { "controller": 1 }]',
      '[{ "controller": "other", "primary": "a/b" }]',
    ])
      suspects.read(forged, false);
    assert.equal(suspects.all, []);
    const one = { controller: "page", primary: "home/one", stalls: 2 };
    suspects.read(JSON.stringify([one]), false);
    assert.equal(suspects.all, [one]);
    suspects.delete("page", "home/one");
    suspects.read(JSON.stringify([one]), true);
    assert.equal(suspects.all, [], "this replica reconciled it");
    const two = { controller: "page", primary: "home/two", stalls: 1 };
    suspects.read(JSON.stringify([one, two]), true);
    assert.equal(suspects.all, [two], "another replica noted it");
    assert.is(suspects.write(), JSON.stringify([two]));
    suspects.read(undefined, false);
    assert.is(suspects.write(), undefined, "a replica that stands by follows the leader");
  });
});
