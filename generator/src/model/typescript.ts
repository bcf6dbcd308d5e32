import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { cachedDataVersionTag } from "node:v8";
import { Script, constants } from "node:vm";
import { crc32 } from "node:zlib";
import type ts from "typescript";

/** Large libraries that are CommonJS modules. */
interface Libraries {
  readonly typescript: typeof import("typescript");
  // Without what reads configuration and finds plugins, prettier loads in a third of the time.
  readonly "prettier/standalone": typeof import("prettier/standalone");
  readonly "prettier/plugins/babel": typeof import("prettier/plugins/babel");
  readonly "prettier/plugins/estree": typeof import("prettier/plugins/estree");
}

const require = createRequire(import.meta.url);

/**
 * Loads a library when it is needed first.
 *
 * By `require`, because `import` reads all of a CommonJS module once more to find out what it exports, and for a compiler that takes
 * three times as long as running it. Node 20 keeps no compiled code, as later ones do.
 */
export function loadLibrary<Name extends keyof Libraries>(name: Name): Libraries[Name] {
  const file = require.resolve(name);
  const isKept = "enableCompileCache" in Module || !file.includes("node_modules");
  return (isKept ? require(file) : requireCompiled(file)) as Libraries[Name];
}

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

/** Returns an expression without what only the compiler reads: parentheses, `as`, `<Type>`, `satisfies`, `!`. */
export function unwrap(expression: ts.Expression, compiler: typeof ts): ts.Expression {
  return compiler.isParenthesizedExpression(expression) ||
    compiler.isAsExpression(expression) ||
    compiler.isTypeAssertionExpression(expression) ||
    compiler.isSatisfiesExpression(expression) ||
    compiler.isNonNullExpression(expression)
    ? unwrap(expression.expression, compiler)
    : expression;
}

/** What no variable or function of a module can be called: the words of ECMAScript 2024, 12.7.2, and what strict mode and modules add. */
export const reservedWords: ReadonlySet<string> = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public return " +
    "static super switch this throw true try typeof var void while with yield"
  ).split(" "),
);

/** The folders of the generator beside those of the controllers. */
const FOLDERS: ReadonlySet<string> = new Set(["generated", "resources"]);

/** Names of devices, which Windows does not allow for files, whatever their extension. */
const DEVICES = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/;

/** Tells whether no file can have a name, whatever its extension. */
export function isDevice(name: string): boolean {
  return DEVICES.test(name);
}

/** Tells whether no controller can have a name, which is also that of its folder. */
export function isReservedController(name: string): boolean {
  return FOLDERS.has(name) || isDevice(name);
}
