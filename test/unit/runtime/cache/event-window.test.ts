import { EventWindow } from "#runtime/cache/resource-view.js";
import { assert, suite } from "../../../support/suite.js";
import { changeOf, SCENARIOS, wordOf } from "./event-scripts.js";

function play(script: string) {
  const window = new EventWindow();
  const told: string[] = [];
  for (const word of script.split(" ")) {
    if (word === "open") window.open();
    else if (word === "close") window.close();
    else if (word === "?") told.push(wordOf(window.check()));
    else if (word.startsWith("own")) window.recordOwn(word.slice(3));
    else window.add(changeOf(word), word.slice(1));
  }
  return { window, told: told.join(" ") };
}

suite("EventWindow", (test) => {
  for (const { number, law, script, window: expected } of SCENARIOS)
    test(`${law} [EventFilterWindowTest ${number}: ${script}]`, () => {
      const { window, told } = play(script);
      assert.is(told, expected);
      // Only the first scenario ends while an echo is still to come.
      assert.is(window.isDone, number !== "1");
    });

  test("is done if no write is in flight, no own event is awaited, and no change is kept", () => {
    const isDone = (script: string) => play(script).window.isDone;
    assert.not(isDone("open"));
    assert.not(isDone("open own5 own6 U5 ? close"), "[5, 6]");
    assert.not(isDone("open own5 U3 ? close"));
    assert.ok(isDone("open own5 own6 U5 ? close U6 ?"), "[5, 6]");
    assert.ok(isDone("open close"));
  });

  test("orders versions numerically, regardless of their arrival", () => {
    assert.is(play("open own10 own9 U10 U9 ?").told, "-");
    assert.is(play("open own100 U99 U100 ?").told, "U100<98");
  });
});
