import type { IncomingHttpHeaders } from "node:http";
import { refusalOf } from "#runtime/operate/debug-endpoint.js";
import { assert, suite } from "../../../../support/suite.js";

const token = "a-token-of-the-debug-endpoint";
const good: IncomingHttpHeaders = { host: "127.0.0.1:8082", authorization: `Bearer ${token}` };
const statusOf = (more: IncomingHttpHeaders) => refusalOf({ ...good, ...more }, token)?.status;

suite("the access to the debug endpoint", (test) => {
  for (const host of ["localhost", "localhost:8082", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:8082"])
    test(`is given by the host ${host}`, () => assert.is(statusOf({ host }), undefined));

  const others = ["", "evil.example", "localhost.evil.example", "evil.example:8082", "127.0.0.1.evil.example"];
  for (const host of [...others, "10.0.0.7:8082", "a@localhost", "localhost:", "::1", "localhost:123456"])
    test(`is refused by the host "${host}", which another machine may have`, () => assert.is(statusOf({ host }), 403));

  test("is refused without a host", () => {
    const { host: _, ...rest } = good;
    assert.is(refusalOf(rest, token)?.status, 403);
  });

  test("is refused to web pages, of whatever origin", () => {
    for (const origin of ["https://evil.example", "http://localhost:8082", "null", ""])
      assert.is(statusOf({ origin }), 403);
  });

  test("needs the whole token, and nothing more", () => {
    for (const authorization of ["", "Bearer", `Basic ${token}`, token, `Bearer ${token}x`, `Bearer ${token.slice(1)}`])
      assert.is(statusOf({ authorization }), 401, authorization);
    assert.is(statusOf({ authorization: `bearer ${token}` }), undefined);
  });
});
