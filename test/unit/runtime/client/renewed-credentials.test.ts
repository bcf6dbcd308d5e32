import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { sleep } from "#runtime/base/wait.js";
import { findError } from "#runtime/base/errors.js";
import { createLogger, messageOf } from "#runtime/base/logger.js";
import { type ReadCredentials, createRenewedCredentials, readTokenFile } from "#runtime/client/credential-refresh.js";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { assert, suite } from "../../../support/suite.js";

/** Credentials whose reads the test ends, in the order in which they were begun. */
function createReads(options: { everyMs?: number; timeoutMs?: number } = {}) {
  const reads: { resolve(read: ReadCredentials): void; reject(error: Error): void; signal: AbortSignal }[] = [];
  const read = (signal: AbortSignal) =>
    new Promise<ReadCredentials>((resolve, reject) => void reads.push({ resolve, reject, signal }));
  const credentials = createRenewedCredentials({ what: "the plugin", read, ...options });
  const ask = (isRejected = false) => credentials({ isRejected });
  return { reads, ask };
}

const of = (authorization: string, more: object = {}) => ({ authorization, ...more });

async function failureOf(promise: unknown): Promise<string> {
  return Promise.resolve(promise).then(
    () => "nothing was thrown",
    (error: unknown) => messageOf(error),
  );
}

suite("token file", (test) => {
  test("keeps the previous token while the file is empty, and fails only after a 401", async () => {
    await using temporary = await createTemporaryFolder();
    const file = join(temporary.path, "token");
    await writeFile(file, "a\n");
    const credentials = createRenewedCredentials({ what: "reading", read: () => readTokenFile(file), everyMs: 0 });
    assert.equal(await credentials({ isRejected: false }), of("Bearer a"));
    for (const text of ["", " \n"]) {
      await writeFile(file, text);
      assert.match(await failureOf(readTokenFile(file)), `${file} is empty`);
      assert.equal(credentials({ isRejected: false }), of("Bearer a"));
      await sleep(20);
      assert.equal(credentials({ isRejected: false }), of("Bearer a"));
    }
    assert.match(await failureOf(credentials({ isRejected: true })), /reading failed: .* is empty/);
  });
});

suite("token file with an invalid header value", (test) => {
  test("keeps the previous token with a warning, and fails with a retryable error after a 401", async () => {
    await using temporary = await createTemporaryFolder();
    const file = join(temporary.path, "token");
    await writeFile(file, "a\n");
    const warnings: string[] = [];
    const logger = {
      ...createLogger("silent"),
      warn: (_fields: object, message: string) => void warnings.push(message),
    };
    const read = () => readTokenFile(file);
    const credentials = createRenewedCredentials({ what: "reading", read, everyMs: 0, logger });
    assert.equal(await credentials({ isRejected: false }), of("Bearer a"));
    await writeFile(file, "secret\nsecret");
    assert.equal(credentials({ isRejected: false }), of("Bearer a"));
    await waitFor("the warning", () => warnings.length > 0);
    assert.match(
      warnings[0]!,
      /^reading failed: the token in .* has a line break, .*; keeping the previous credentials$/,
    );
    assert.not.match(warnings[0]!, "secret");
    assert.equal(credentials({ isRejected: false }), of("Bearer a"));
    const error: unknown = await Promise.resolve(credentials({ isRejected: true })).catch((thrown: unknown) => thrown);
    assert.match(messageOf(error), /reading failed: the token in .* has a line break/);
    assert.is(findError(error, "TerminalError"), undefined, "a reconcile is retried");
    await writeFile(file, "b\n");
    await waitFor("the new token", async () => (await credentials({ isRejected: false })).authorization === "Bearer b");
  });
});

suite("refreshed credentials", (test) => {
  test("are read once for all waiting requests, and not again while they are valid", async () => {
    const { reads, ask } = createReads();
    const asked = [ask(), ask()];
    reads[0]!.resolve(of("a"));
    assert.equal(await Promise.all(asked), [of("a"), of("a")]);
    assert.equal([ask(), reads.length], [of("a"), 1]);
  });

  test("are used while the next read is in progress and after it fails", async () => {
    const { reads, ask } = createReads({ everyMs: 0 });
    const first = ask();
    reads[0]!.resolve(of("a"));
    await first;
    assert.equal(ask(), of("a"));
    reads[1]!.reject(new Error("the disk is full"));
    await sleep(0);
    assert.equal(ask(), of("a"));
    reads[2]!.resolve(of("b"));
    await sleep(0);
    assert.equal(ask(), of("b"));
  });

  test("are awaited after a 401 or their expiry", async () => {
    const { reads, ask } = createReads({ everyMs: Infinity });
    const first = ask();
    reads[0]!.resolve(of("a"));
    await first;
    const second = ask(true);
    assert.instance(second, Promise);
    reads[1]!.resolve(of("b", { expiresAt: Date.now() - 1 }));
    assert.is((await second).authorization, "b");
    assert.instance(ask(), Promise);
  });

  test("are refreshed after a 401 at most every 5 s, and used in between", async () => {
    const { reads, ask } = createReads({ everyMs: Infinity });
    const { now } = Date;
    const askAt = (ms: number, isRejected: boolean) => {
      Date.now = () => ms;
      const asked = ask(isRejected);
      Date.now = now;
      return asked;
    };
    const first = askAt(1e6, false);
    reads[0]!.resolve(of("a"));
    await first;
    const second = askAt(1e6, true);
    assert.is(askAt(1e6, true), second, "all requests wait for the read");
    reads[1]!.resolve(of("b"));
    await second;
    assert.equal([askAt(1e6 + 4_999, true), reads.length], [of("b"), 2]);
    const third = askAt(1e6 + 5_000, true);
    assert.instance(third, Promise);
    reads[2]!.reject(new Error("sso is down"));
    assert.is(await failureOf(third), "the plugin failed: sso is down");
    assert.equal([askAt(1e6 + 5_001, true), reads.length], [of("b"), 3], "it may be good again");
    assert.instance(askAt(1e6 + 10_000, true), Promise);
  });

  test("are refreshed even if the clock is set back", async () => {
    const { reads, ask } = createReads();
    const first = ask();
    reads[0]!.resolve(of("a"));
    await first;
    const { now } = Date;
    try {
      Date.now = () => now() - 3_600_000;
      ask();
    } finally {
      Date.now = now;
    }
    assert.is(reads.length, 2);
  });

  test("are refreshed before they expire", async () => {
    const { reads, ask } = createReads({ everyMs: Infinity });
    const first = ask();
    reads[0]!.resolve(of("a", { expiresAt: Date.now() + 100 }));
    await first;
    assert.is(reads.length, 1);
    await sleep(90);
    ask();
    assert.is(reads.length, 2);
  });

  test("fail the waiting requests and abort the read after the timeout, then are read again", async () => {
    const { reads, ask } = createReads({ timeoutMs: 20 });
    assert.is(await failureOf(ask()), "the plugin failed: it did not answer within 0.02 s");
    assert.ok(reads[0]!.signal.aborted);
    const second = ask();
    reads[1]!.resolve(of("b"));
    assert.equal(await second, of("b"));
  });
});
