import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { cachedDataVersionTag } from "node:v8";
import { constants, Script } from "node:vm";
import { crc32 } from "node:zlib";

/** A CommonJS module within the function that Node puts around it. */
type Wrapped = (exports: unknown, require: NodeJS.Require, module: object, file: string, folder: string) => void;

/**
 * Runs a CommonJS module of a package with what V8 compiled of it for an earlier process, as the compile cache of Node 22 does.
 *
 * The code is kept in `node_modules/.cache` beside the package: who can write there can change the package, too. It is stored when this
 * process exits, since V8 compiles most functions when they are called first.
 */
export function requireCompiled(file: string): unknown {
  const require = createRequire(file);
  if (require.cache[file] !== undefined) return require(file);
  const text = readFileSync(file);
  const storage = new CodeFile(file, Buffer.from(`${cachedDataVersionTag()} ${crc32(text)}`.padEnd(KEY_BYTES)));
  const kept = storage.read();
  const script = new Script(Module.wrap(text.toString()), {
    filename: file,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    ...(kept === undefined ? {} : { cachedData: kept }),
  });
  if (kept === undefined || script.cachedDataRejected === true)
    process.once("exit", () => storage.write(script.createCachedData()));
  const module = new Module(file);
  const run = script.runInThisContext() as Wrapped;
  run(module.exports, require, module, file, dirname(file));
  require.cache[file] = module;
  return module.exports;
}

/** A number that names V8, and the checksum of the text. */
const KEY_BYTES = 32;
const HEAD_BYTES = KEY_BYTES + 4;

/** The compiled code of a module: a key, a checksum and the code. */
class CodeFile {
  readonly #path: string;
  readonly #key: Buffer;

  constructor(module: string, key: Buffer) {
    const packages = module.slice(0, module.lastIndexOf(`${sep}node_modules${sep}`) + 1);
    const name = relative(join(packages, "node_modules"), module).replaceAll(sep, "-");
    this.#path = join(packages, "node_modules/.cache/gen-operator", `${name}.bin`);
    this.#key = key;
  }

  /** Returns the code; undefined if there is none, or it is damaged, or of another text or V8. */
  read(): Buffer | undefined {
    try {
      const stored = readFileSync(this.#path);
      const code = stored.subarray(HEAD_BYTES);
      const isWhole = stored.subarray(0, KEY_BYTES).equals(this.#key) && stored.readUInt32LE(KEY_BYTES) === crc32(code);
      return isWhole ? code : undefined;
    } catch {
      return undefined;
    }
  }

  write(code: Buffer): void {
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE(crc32(code));
    const temporary = `${this.#path}.${process.pid}`;
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      writeFileSync(temporary, Buffer.concat([this.#key, sum, code]));
      renameSync(temporary, this.#path);
    } catch {
      // Only the time of the next run depends on it.
      if (existsSync(temporary)) rmSync(temporary);
    }
  }
}
