import type { IncomingHttpHeaders } from "node:http";
import { refusalOf } from "#runtime/operate/debug-endpoint.js";
import { assert, suite } from "../../../../support/suite.js";

const token = "a-token-of-the-debug-endpoint";
const good: IncomingHttpHeaders = { host: "127.0.0.1:8082", authorization: `Bearer ${token}` };
const statusOf = (more: IncomingHttpHeaders) => refusalOf({ ...good, ...more }, token)?.status;

suite("debug endpoint access", (test) => {
  for (const host of ["localhost", "localhost:8082", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:9", "[::1]", "[::1]:8082"])
    test(`is allowed with host ${host}`, () => assert.is(statusOf({ host }), undefined));

  const others = ["", "evil.example", "localhost.evil.example", "evil.example:8082", "127.0.0.1.evil.example"];
  for (const host of [...others, "10.0.0.7:8082", "a@localhost", "localhost:", "::1", "localhost:123456"])
    test(`is rejected with 403 for host "${host}", which another machine may have`, () =>
      assert.is(statusOf({ host }), 403));

  test("is rejected with 403 without a host", () => {
    const { host: _, ...rest } = good;
    assert.is(refusalOf(rest, token)?.status, 403);
  });

  test("is rejected with 403 for any browser origin", () => {
    for (const origin of ["https://evil.example", "http://localhost:8082", "null", ""])
      assert.is(statusOf({ origin }), 403);
  });

  test("is rejected with 401 without the exact bearer token", () => {
    for (const authorization of ["", "Bearer", `Basic ${token}`, token, `Bearer ${token}x`, `Bearer ${token.slice(1)}`])
      assert.is(statusOf({ authorization }), 401, authorization);
    assert.is(statusOf({ authorization: `bearer ${token}` }), undefined);
  });
});
