import { Store } from "#apiserver/storage/store.js";
import { assert, suite } from "../../../support/suite.js";

suite("subscriber of a Store", (test) => {
  test("is ended if it throws, without affecting the write or other subscribers", () => {
    const store = new Store().resource("things");
    const told: string[] = [];
    store.subscribe({
      next() {
        throw new Error("a stream that cannot be written");
      },
      end: () => told.push("failing: end"),
    });
    store.subscribe({ next: ({ key }) => told.push(`other: ${key}`), end: () => told.push("other: end") });
    assert.is(store.put("a", { metadata: { name: "a" } }).key, "a");
    store.put("b", { metadata: { name: "b" } });
    assert.equal(told, ["failing: end", "other: a", "other: b"]);
  });
});
