import { OwnEvents } from "#runtime/cache/resource-view.js";
import { assert, suite } from "../../../support/suite.js";
import { changeOf, SCENARIOS, wordOf } from "./event-scripts.js";

const KEY = "x/a";

function play(script: string, ownEvents = new OwnEvents()) {
  const told: string[] = [];
  for (const word of script.split(" ")) {
    if (word === "open") ownEvents.open(KEY);
    else if (word === "close") told.push(wordOf(ownEvents.close(KEY)));
    else if (word.startsWith("own")) ownEvents.recordOwn(KEY, word.slice(3));
    else if (word !== "?") told.push(wordOf(ownEvents.filter(changeOf(word), word.slice(1))));
  }
  return { ownEvents, told: told.filter((word) => word !== "-").join(" ") };
}

suite("OwnEvents", (test) => {
  for (const { number, law, script, controller } of SCENARIOS)
    test(`${law} [EventFilterSupportTest, window ${number}: ${script}]`, () => {
      const { ownEvents, told } = play(script);
      assert.is(told, controller);
      assert.is(ownEvents.size, number === "1" ? 1 : 0);
    });

  test("opens one window per object, which concurrent writes share [EventFilterSupportTest start]", () => {
    const { ownEvents } = play("open");
    assert.is(ownEvents.size, 1);
    play("open", ownEvents);
    assert.is(ownEvents.size, 1);
    play("close", ownEvents);
    assert.is(ownEvents.size, 1);
    play("close", ownEvents);
    assert.is(ownEvents.size, 0);
  });

  test("emits nothing when a write without a window ends [EventFilterSupportTest done]", () => {
    assert.is(new OwnEvents().close(KEY), undefined);
  });

  test("emits events before, during and after a write, except its own [EventFilterSupportTest surrounding]", () => {
    assert.is(play("U4 open own5 U5 U6 close U7").told, "U4<3 U6<5 U7<6");
  });

  test("emits every event and records no own versions without a window [EventFilterSupportTest no window]", () => {
    const { ownEvents, told } = play("A1 own2 U2 D3");
    assert.is(told, "A1 U2<1 D3");
    assert.is(ownEvents.size, 0);
  });

  test("emits a later deletion immediately, and a later addition at the end [EventFilterSupportTest additional]", () => {
    const { ownEvents, told } = play("open own5 U5 D6");
    assert.is(told, "D6");
    assert.is(play("A7", ownEvents).told, "");
    assert.is(play("close", ownEvents).told, "A7");
  });

  test("drops the window of a deleted object with its kept events [EventFilterSupportTest ghost]", () => {
    const { ownEvents } = play("open own5 U3 close");
    assert.is(ownEvents.size, 1);
    ownEvents.forget(KEY, "6");
    assert.is(ownEvents.size, 0);
    ownEvents.forget(KEY, "6");
    assert.is(ownEvents.size, 0, "one that is not known is none");
    assert.is(play("U7", ownEvents).told, "U7<6");
  });

  test("keeps the windows of other objects when an object is deleted [EventFilterSupportTest ghost in a list]", () => {
    const { ownEvents } = play("open own5");
    ownEvents.open("x/b");
    ownEvents.recordOwn("x/b", "6");
    ownEvents.close("x/b");
    ownEvents.forget("x/b", "9");
    assert.is(ownEvents.size, 1);
    assert.is(wordOf(ownEvents.filter(changeOf("R5"), "5")), "U5<4", "a list is under way");
  });

  test("keeps the window of an in-flight write when its object is deleted", () => {
    const { ownEvents } = play("open own5 U3");
    ownEvents.forget(KEY, "6");
    assert.is(play("own7 A7 close", ownEvents).told, "");
    assert.is(ownEvents.size, 0);
  });

  test("drops no event of a relist if the window opens during it", () => {
    const ownEvents = new OwnEvents();
    ownEvents.open(KEY);
    ownEvents.recordOwn(KEY, "5");
    assert.is(wordOf(ownEvents.filter(changeOf("R5"), "5")), "U5<4");
  });

  test("stops awaiting an own event when the watch has passed its version, and emits kept changes", () => {
    const { ownEvents } = play("open own5 U3 close");
    assert.equal(ownEvents.passTo("4").map(wordOf), []);
    assert.is(ownEvents.size, 1);
    assert.equal(ownEvents.passTo("5").map(wordOf), ["U3<2"]);
    assert.is(ownEvents.size, 0);
  });

  test("leaves no window if a write ends after the watch has passed its version", () => {
    const { ownEvents } = play("open own5");
    assert.is(ownEvents.close(KEY, "6"), undefined);
    assert.is(ownEvents.size, 0);
  });
});
