import { acquireOwnWrites, OwnWrites } from "#runtime/client/own-writes.js";
import { assert, suite } from "../../../support/suite.js";

const PATH = "/api/v1/namespaces/default/configmaps/one";
const T0 = Date.parse("2026-11-29T10:00:00Z") / 1_000;
const header = (seconds: number) => new Date(seconds * 1_000).toUTCString();
const body = (...seconds: number[]) => {
  const managedFields = seconds.map((each) => ({
    manager: "a",
    time: new Date(each * 1_000).toISOString().replace(".000", ""),
  }));
  return Buffer.from(JSON.stringify({ metadata: { managedFields } }));
};

suite("OwnWrites", (test) => {
  test("treats a managedFields time after the last response for an object as another process", () => {
    const writes = new OwnWrites();
    writes.begin(`${PATH}?fieldManager=page`)({ status: 200, date: header(T0), body: body(T0 - 9, T0 - 1) });
    assert.equal(
      [T0 - 1, T0, T0 + 5, T0 + 6, T0 + 900].map((time) => writes.isForeign([PATH], time)),
      [...[false, false, false, true, true]],
    );
    assert.ok(writes.isForeign(["/api/v1/namespaces/default/configmaps/two"], T0));
  });

  test("uses the time in the body if a proxy set the Date header from another clock", () => {
    const writes = new OwnWrites();
    writes.begin(PATH)({ status: 200, date: header(T0 - 3_600), body: body(T0 - 9, T0, T0 - 5) });
    assert.equal(
      [T0, T0 + 6].map((time) => writes.isForeign([PATH], time)),
      [false, true],
    );
    assert.ok(Math.abs((writes.time ?? 0) - T0) <= 1);
  });

  test("treats a write of a subresource as a write of its object", () => {
    const writes = new OwnWrites();
    writes.begin(`${PATH}/status?force=true`)({ status: 200, date: header(T0) });
    assert.not.ok(writes.isForeign([PATH], T0));
  });

  test("treats no time as foreign while a write of the object or a create in its collection is in flight", () => {
    for (const path of [PATH, PATH.slice(0, PATH.lastIndexOf("/"))]) {
      const writes = new OwnWrites();
      const paths = [PATH, PATH.slice(0, PATH.lastIndexOf("/"))];
      const [first, second] = [writes.begin(path), writes.begin(path)];
      first({ status: 201, date: header(T0) });
      assert.not.ok(writes.isForeign(paths, T0 + 900));
      second({ status: 201, date: header(T0 + 1) });
      assert.ok(writes.isForeign(paths, T0 + 900));
    }
  });

  for (const [how, answer] of Object.entries({ undefined, "504": { status: 504, date: header(T0) } }))
    test(`allows 2 minutes for a write whose response is lost: ${how}`, () => {
      const writes = new OwnWrites();
      writes.noteDate(header(T0));
      writes.begin(PATH)(answer);
      assert.equal(
        [T0 + 100, T0 + 120, T0 + 130].map((time) => writes.isForeign([PATH], time)),
        [false, false, true],
      );
    });

  test("treats no time as foreign if the server time is unknown and a response is lost", () => {
    const writes = new OwnWrites();
    assert.is(writes.time, undefined);
    writes.begin(PATH)();
    assert.not.ok(writes.isForeign([PATH], T0));
  });

  test("are shared by all clients of a server until the last one is closed", () => {
    const [first, second] = [acquireOwnWrites("https://a"), acquireOwnWrites("https://a")];
    assert.is(first.writes, second.writes);
    assert.is.not(acquireOwnWrites("https://b").writes, first.writes);
    first.release();
    first.release();
    assert.is(acquireOwnWrites("https://a").writes, second.writes);
  });
});
