import { errorOf, errorOfStatus } from "#runtime/client/request.js";
import { assert, suite } from "../../../support/suite.js";

function retryAfterMsOf(header: string | undefined, seconds?: unknown): number | undefined {
  const headers = header === undefined ? {} : { "retry-after": header };
  const details = { retryAfterSeconds: seconds };
  return errorOf({ path: "/", status: 429, headers, body: Buffer.from(JSON.stringify({ kind: "Status", details })) })
    .retryAfterMs;
}

suite("errors of the API server", (test) => {
  test("when to try again is read from the header, as seconds or as a date, or else from the status", () => {
    assert.equal(
      [retryAfterMsOf("2"), retryAfterMsOf("2", 7), retryAfterMsOf(undefined, 7), retryAfterMsOf("", 7)],
      [2_000, 2_000, 7_000, 7_000],
    );
    const soon = retryAfterMsOf(new Date(Date.now() + 100_000).toUTCString())!;
    assert.ok(soon > 90_000 && soon <= 100_000, String(soon));
  });

  test("nobody waits longer than 5 minutes because a server says so", () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
    assert.equal(
      [retryAfterMsOf("3600"), retryAfterMsOf(inAnHour), retryAfterMsOf(undefined, 3_600)],
      [300_000, 300_000, 300_000],
    );
    assert.is(errorOfStatus({ code: 429, details: { retryAfterSeconds: 3_600 } }).retryAfterMs, 300_000);
  });

  test("a time that has passed is now, and what is no time is none", () => {
    assert.equal([retryAfterMsOf("-5"), retryAfterMsOf(new Date(0).toUTCString())], [0, 0]);
    assert.equal(
      [retryAfterMsOf(undefined), retryAfterMsOf(undefined, null), retryAfterMsOf(""), retryAfterMsOf("soon")],
      [undefined, undefined, undefined, undefined],
    );
  });

  test("a redirect is one, which says where it leads, without what the query may hold", () => {
    const headers = { location: "https://login.example.com/start?token=x" };
    const { code, message } = errorOf({ path: "/", status: 302, headers, body: Buffer.from("<a>Found</a>") });
    assert.equal([code, message], [302, "302: redirected to https://login.example.com/start"]);
  });
});
