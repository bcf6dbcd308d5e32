import { errorOf, errorOfStatus } from "#runtime/client/transport.js";
import { assert, suite } from "../../../support/suite.js";

function retryAfterMsOf(header: string | undefined, seconds?: unknown): number | undefined {
  const headers = header === undefined ? {} : { "retry-after": header };
  const details = { retryAfterSeconds: seconds };
  return errorOf({ path: "/", status: 429, headers, body: Buffer.from(JSON.stringify({ kind: "Status", details })) })
    .retryAfterMs;
}

suite("errors of the API server", (test) => {
  test("read the retry delay from Retry-After in seconds or as a date, else from the Status", () => {
    assert.equal(
      [retryAfterMsOf("2"), retryAfterMsOf("2", 7), retryAfterMsOf(undefined, 7), retryAfterMsOf("", 7)],
      [2_000, 2_000, 7_000, 7_000],
    );
    const soon = retryAfterMsOf(new Date(Date.now() + 100_000).toUTCString())!;
    assert.ok(soon > 90_000 && soon <= 100_000, String(soon));
  });

  test("limit the retry delay to 5 minutes", () => {
    const inAnHour = new Date(Date.now() + 3_600_000).toUTCString();
    assert.equal(
      [retryAfterMsOf("3600"), retryAfterMsOf(inAnHour), retryAfterMsOf(undefined, 3_600)],
      [300_000, 300_000, 300_000],
    );
    assert.is(errorOfStatus({ code: 429, details: { retryAfterSeconds: 3_600 } }).retryAfterMs, 300_000);
  });

  test("have a retry delay of 0 for a past time, and none for an invalid value", () => {
    assert.equal([retryAfterMsOf("-5"), retryAfterMsOf(new Date(0).toUTCString())], [0, 0]);
    assert.equal(
      [retryAfterMsOf(undefined), retryAfterMsOf(undefined, null), retryAfterMsOf(""), retryAfterMsOf("soon")],
      [undefined, undefined, undefined, undefined],
    );
  });

  test("contain the target of a 302 redirect without its query", () => {
    const headers = { location: "https://login.example.com/start?token=x" };
    const { code, message } = errorOf({ path: "/", status: 302, headers, body: Buffer.from("<a>Found</a>") });
    assert.equal([code, message], [302, "302: redirected to https://login.example.com/start"]);
  });
});
