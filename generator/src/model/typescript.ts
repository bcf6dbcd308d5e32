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
  // The standalone build has no configuration and plugin lookup, and loads in a third of the time.
  readonly "prettier/standalone": typeof import("prettier/standalone");
  readonly "prettier/plugins/babel": typeof import("prettier/plugins/babel");
  readonly "prettier/plugins/estree": typeof import("prettier/plugins/estree");
}

const require = createRequire(import.meta.url);

/**
 * Loads a library on first use.
 *
 * Uses `require`, because `import` parses a CommonJS module once more to find its exports, which takes three times as long as executing a compiler.
 * Node.js 20 has no compile cache, so one is provided by requireCompiled.
 */
export function loadLibrary<Name extends keyof Libraries>(name: Name): Libraries[Name] {
  const file = require.resolve(name);
  const isKept = "enableCompileCache" in Module || !file.includes("node_modules");
  return (isKept ? require(file) : requireCompiled(file)) as Libraries[Name];
}

/** A CommonJS module in the wrapper function of Node.js. */
type Wrapped = (exports: unknown, require: NodeJS.Require, module: object, file: string, folder: string) => void;

/**
 * Loads a CommonJS module of a package with V8's code cache of an earlier process, like the compile cache of Node.js 22.
 *
 * The cache is stored in `node_modules/.cache` next to the package, where anyone with write access could also change the package. It is written when
 * the process exits, because V8 compiles most functions when they are first called.
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

/** Version tag of V8's code cache, and checksum of the source text. */
const KEY_BYTES = 32;
const HEAD_BYTES = KEY_BYTES + 4;

/** The cached code of a module: a key, a checksum, and the code. */
class CodeFile {
  readonly #path: string;
  readonly #key: Buffer;

  constructor(module: string, key: Buffer) {
    const packages = module.slice(0, module.lastIndexOf(`${sep}node_modules${sep}`) + 1);
    const name = relative(join(packages, "node_modules"), module).replaceAll(sep, "-");
    this.#path = join(packages, "node_modules/.cache/gen-operator", `${name}.bin`);
    this.#key = key;
  }

  /** Returns the cached code; undefined if it is missing, damaged, or for another text or version of V8. */
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
      // A missing cache only makes the next run slower.
      if (existsSync(temporary)) rmSync(temporary);
    }
  }
}

/** Removes syntax from an expression that does not affect its value: parentheses, `as`, `<Type>`, `satisfies`, and `!`. */
export function unwrap(expression: ts.Expression, compiler: typeof ts): ts.Expression {
  return compiler.isParenthesizedExpression(expression) ||
    compiler.isAsExpression(expression) ||
    compiler.isTypeAssertionExpression(expression) ||
    compiler.isSatisfiesExpression(expression) ||
    compiler.isNonNullExpression(expression)
    ? unwrap(expression.expression, compiler)
    : expression;
}

/**
 * Words that cannot be the name of a variable or a function in a module: the reserved words of ECMAScript 2024, section 12.7.2, and those of strict
 * mode and modules.
 */
export const reservedWords: ReadonlySet<string> = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public return " +
    "static super switch this throw true try typeof var void while with yield"
  ).split(" "),
);

/** Folders of generated code that are not folders of controllers. */
const FOLDERS: ReadonlySet<string> = new Set(["generated", "resources"]);

/** Device names that Windows does not allow as file names, with any extension. */
const DEVICES = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])$/;

/** Returns whether a name is a device name, which no file can have. */
export function isDevice(name: string): boolean {
  return DEVICES.test(name);
}

/** Returns whether a controller cannot have a name, because its folder has the same name. */
export function isReservedController(name: string): boolean {
  return FOLDERS.has(name) || isDevice(name);
}
