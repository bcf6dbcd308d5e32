import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { messageOf, type Logger } from "../../base/logger.js";

/** The token that a request has to have. */
export type DebugToken = ReturnType<typeof createRandomToken>;

const MIN_LENGTH = 16;
// What may follow the word Bearer in a header (RFC 6750).
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** Returns the token of a file, which is read for each request, as a mounted Secret may change; or one that is made at the start. */
export function createDebugToken(file: string | undefined, logger: Logger): DebugToken {
  if (file === undefined) return createRandomToken(logger);
  const read = () => readToken(file);
  return { open: async () => void (await read()), read, close: async () => {} };
}

async function readToken(file: string): Promise<string> {
  const token = await readFile(file, "utf8").then(
    (text) => text.trim(),
    (error: unknown) => {
      throw new Error(`the token of the debug endpoint (debugTokenFile) cannot be read: ${messageOf(error)}`);
    },
  );
  if (token.length >= MIN_LENGTH && TOKEN.test(token)) return token;
  throw new Error(
    `the token of the debug endpoint in ${file} (debugTokenFile) has to be ${MIN_LENGTH} characters at least, of A-Z a-z 0-9 - . _ ~ + /`,
  );
}

// The log names the file: a token in the log would reach everybody who reads the log.
function createRandomToken(logger: Logger) {
  let made: { readonly token: string; readonly file: string } | undefined;
  return {
    /** Prepares the token, and writes its file if it has one; throws if that fails. */
    async open(): Promise<void> {
      if (made !== undefined) return;
      const token = randomBytes(32).toString("base64url");
      try {
        // A folder that only this user may enter, under a name that nobody can have taken.
        const file = join(await mkdtemp(join(tmpdir(), "gen-operator-debug-")), "token");
        await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" });
        made = { token, file };
      } catch (error) {
        const way = "make that folder writable, or state debugTokenFile";
        throw new Error(
          `the token of the debug endpoint cannot be written to ${tmpdir()}: ${messageOf(error)}; ${way}`,
        );
      }
      logger.info({ file: made.file }, `the token of the debug endpoint is in ${made.file}`);
    },
    /** Returns the token; throws if it cannot be read. */
    async read(): Promise<string> {
      if (made === undefined) throw new Error("the debug endpoint has no token, as it is not open");
      return made.token;
    },
    async close(): Promise<void> {
      const file = made?.file;
      made = undefined;
      if (file !== undefined) await rm(dirname(file), { recursive: true, force: true });
    },
  };
}
