import { assert, suite } from "#test/support/suite.js";
import { followObjects } from "./followed-objects.js";

suite("followObjects", (test) => {
  test("keeps only objects of the latest watch", async () => {
    const watches: { tell: (line: string) => void; end: () => void }[] = [];
    const watch = async (_: string, tell: (line: string) => void, end = () => {}) => {
      watches.push({ tell, end });
      return () => {};
    };
    const event = (type: string, name: string, value: number) =>
      JSON.stringify({ type, object: { metadata: { name }, value } });
    const objects = await followObjects<{ metadata: { name: string }; value: number }>({ watch }, "/maps");
    const values = () => Object.fromEntries([...objects].map(([name, { value }]) => [name, value]));
    watches[0]!.tell(event("ADDED", "a", 1));
    watches[0]!.tell(event("ADDED", "b", 1));
    watches[0]!.tell(event("MODIFIED", "b", 2));
    watches[0]!.tell(event("DELETED", "a", 1));
    assert.equal(values(), { b: 2 });
    watches[0]!.end();
    assert.equal(values(), {});
    watches[1]!.tell(event("ADDED", "c", 3));
    assert.equal(values(), { c: 3 });
  });
});
