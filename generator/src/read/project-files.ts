import { isUtf8 } from "node:buffer";
import {
  type Dirent,
  type Stats,
  existsSync,
  lstatSync,
  readFileSync,
  readdirSync,
  realpathSync,
  statSync,
} from "node:fs";
import { readFile, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { type Diagnostic, positionAfter, quote, slashed } from "../diagnostic.js";
import { digestOf } from "../stage.js";
import { isSystemError, reasonOf } from "../system-error.js";
import { UNREADABLE_FILE } from "./rules.js";
import { isRecord } from "./yaml/values.js";

/** A text file of a project. */
export interface ProjectFile {
  /** Path relative to the project, with forward slashes. */
  readonly file: string;
  readonly text: string;
}

/** Returns whether a file is a workflow spec: `workflow.yaml` or `*.workflow.yaml` (or `.yml`, `.json`) in the root folder of a project. */
export function isSpecFile(file: string): boolean {
  return /^(?:[^/]+\.)?workflow\.(?:yaml|yml|json)$/.test(file);
}

/** Lists the workflow specs of a project. */
export async function listSpecFiles(project: string): Promise<string[]> {
  const entries = await readdir(project, { withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory() && isSpecFile(entry.name))
    .map(({ name }) => name)
    .sort();
}

/** Lists the CRD files of a project, or returns a diagnostic if the folder cannot be read. */
export async function findCrdFiles(project: string): Promise<string[] | Diagnostic> {
  try {
    return await listCrdFiles(project);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const message = `cannot read "crds": ${reasonOf(error)}`;
    return { ...UNREADABLE_FILE.violation, message };
  }
}

/** Lists the YAML and JSON files below `crds`. */
export async function listCrdFiles(project: string): Promise<string[]> {
  if (!(await isDirectory(join(project, "crds")))) return [];
  return entriesBelow(project, "crds")
    .flatMap(([path]) => (/\.(?:yaml|yml|json)$/.test(path) ? [path] : []))
    .sort();
}

/**
 * Lists all entries below a folder of a project by path, except folders and the contents of `skipped`.
 *
 * Uses synchronous calls: a project has one folder per controller, and dispatching a call to the thread pool takes longer than most calls.
 */
export function entriesBelow(project: string, folder: string, skipped?: string): (readonly [path: string, Dirent])[] {
  return readdirSync(join(project, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (!entry.isDirectory()) return [[path, entry] as const];
    return path === skipped ? [] : entriesBelow(project, path, skipped);
  });
}

/** Returns whether a path is a directory. */
export async function isDirectory(path: string): Promise<boolean> {
  return (await statOf(path))?.isDirectory() ?? false;
}

/** Returns a path relative to the project, with forward slashes; undefined if it is outside. */
export function pathInProject(project: string, path: string): string | undefined {
  const inside = relative(resolve(project), resolve(project, path));
  if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) return undefined;
  return slashed(inside);
}

/** Name of the package of a project, or of its folder if package.json has none. */
export interface PackageName {
  readonly name: string;
  /** Set if package.json cannot be read or parsed: manifests generated under another name would not replace the deployed ones. */
  readonly problem?: Diagnostic;
}

/** Reads the name of the package of a project. */
export async function readPackageName(project: string): Promise<PackageName> {
  const file = join(project, "package.json");
  const ofFolder = { name: basename(resolve(project)) };
  const fail = (message: string): PackageName => ({
    ...ofFolder,
    problem: { ...UNREADABLE_FILE.violation, message },
  });
  let text: string;
  try {
    // Reading a named pipe would block forever.
    if (!(await stat(file)).isFile()) return fail('"package.json" is not a file');
    // Node.js and npm accept a byte order mark.
    text = new TextDecoder().decode(await readFile(file));
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code === "ENOENT" ? ofFolder : fail(`cannot read "package.json": ${reasonOf(error)}`);
  }
  try {
    const manifest: unknown = JSON.parse(text);
    return isRecord(manifest) && typeof manifest["name"] === "string" ? { name: manifest["name"] } : ofFolder;
  } catch (error) {
    const { describeJsonError } = await import("./yaml/parse-yaml.js");
    return { ...ofFolder, problem: describeJsonError("package.json", text, error as SyntaxError) };
  }
}

/** Reads a UTF-8 file of a project, or returns the problem. */
export async function readProjectFile(project: string, file: string): Promise<ProjectFile | Diagnostic> {
  const path = resolve(project, file);
  const fail = (message: string): Diagnostic => ({ ...UNREADABLE_FILE.violation, message });
  try {
    if (!(await stat(path)).isFile()) return fail(`${quote(file)} is not a file`);
    const text = decodeText(file, await readFile(await realpath(path)));
    return typeof text === "string" ? { file, text } : text;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === "ENOENT") return fail(`file ${quote(file)} not found`);
    return fail(`cannot read ${quote(file)}: ${reasonOf(error)}`);
  }
}

/** Reads a file again whose digest is known. Throws if it has changed. */
export function readKnownFile(project: string, file: string, digest: string): string {
  const bytes = readFileSync(resolve(project, file));
  const text = digestOf(bytes) === digest ? decodeText(file, bytes) : undefined;
  if (typeof text !== "string") throw new Error(`refused to use ${file}: it is being changed; run the command again`);
  return text;
}

async function statOf(path: string) {
  try {
    return await stat(path);
  } catch {
    return undefined;
  }
}

/** Lists the user code of a project: everything below `src` or another folder, except generated code. */
export async function listSourceFiles(project: string, folder = "src"): Promise<string[]> {
  if (!(await isDirectory(join(project, folder)))) return [];
  return entriesBelow(project, folder, "src/generated")
    .flatMap(([path, entry]) => (entry.isFile() && /\.m?ts$/.test(path) && !/\.d\.m?ts$/.test(path) ? [path] : []))
    .sort();
}

/** Reads the user code of a project. */
export async function readSources(project: string, folder = "src"): Promise<ProjectFile[]> {
  const files = await listSourceFiles(project, folder);
  const read = await Promise.all(files.map((file) => readProjectFile(project, file)));
  // Skip unreadable files; the compiler reports them if they are imported.
  return read.flatMap((file) => ("rule" in file ? [] : [file]));
}

/** Decodes the bytes of a file as UTF-8, or returns the position of the first invalid byte. */
export function decodeText(file: string, bytes: Uint8Array): string | Diagnostic {
  // Reject invalid bytes: replacement characters would end up in generated code.
  if (isUtf8(bytes)) return withoutMark(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
  const valid = validPartOf(bytes);
  const byte = bytes[Buffer.byteLength(valid)] ?? 0;
  return {
    ...UNREADABLE_FILE.violation,
    message: `invalid UTF-8: byte 0x${byte.toString(16).padStart(2, "0")} does not start a valid character`,
    position: positionAfter(file, valid),
    hint: hasMarkOfUtf16(bytes) ? "save the file as UTF-8 instead of UTF-16" : "save the file as UTF-8",
  };
}

/** Removes a byte order mark. */
function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/** Returns the text before the first invalid byte. */
function validPartOf(bytes: Uint8Array): string {
  const decodePart = (length: number) => decode(bytes.subarray(0, length));
  let [valid, invalid] = [0, bytes.length + 1];
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >>> 1;
    if (decodePart(middle) === undefined) invalid = middle;
    else valid = middle;
  }
  return decodePart(valid) ?? "";
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}

function hasMarkOfUtf16([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
}

// Access to files that a run may replace. Symbolic links must not lead out of the project. Uses synchronous calls, because dispatching a call to the
// thread pool takes several times as long as most calls, and there are several per file.

/**
 * Reads the file at a path of a project; undefined if it does not exist. Throws an Error with the path if it is not a regular file of the project,
 * but a folder, a named pipe, or a symbolic link that is broken or leads outside.
 */
export async function readPresentFile(root: string, path: string): Promise<string | undefined> {
  const refuse = (why: string) => new Error(`refused to write ${path}: ${why}`);
  const contained = await containedPath(root, path);
  if (contained === undefined) throw refuse("it is outside the project");
  const problem = problemOf(root, path);
  if (problem !== undefined) throw refuse(problem);
  return readIfPresent(contained);
}

/** Reads a regular file of a project; undefined if it does not exist, is not a regular file, or is outside. */
export async function readPlainFile(root: string, path: string): Promise<string | undefined> {
  const contained = await containedPath(root, path);
  if (contained === undefined || problemOf(root, path) !== undefined) return undefined;
  return readIfPresent(contained);
}

/** Returns the absolute path of a project file; undefined if it is outside, also through a symbolic link. */
export async function containedPath(root: string, path: string): Promise<string | undefined> {
  if (path === "" || isAbsolute(path) || path.includes("\0") || path.includes("\\")) return undefined;
  if (path.split("/").some((part) => part === ".." || part === "." || part === "")) return undefined;
  const target = join(root, path);
  for (let existing = target; ; existing = dirname(existing)) {
    const real = attempt(() => (lstatOf(existing) === undefined ? undefined : realpathSync.native(existing)));
    if (real !== undefined) return isInside(root, real) ? target : undefined;
    if (existing === root) return undefined;
  }
}

function isInside(root: string, path: string): boolean {
  const from = relative(root, path);
  return from === "" || (from !== ".." && !from.startsWith(`..${sep}`) && !isAbsolute(from));
}

/** Returns why a path cannot be written, according to the types of the file and its parent folders; undefined if it can. */
function problemOf(root: string, path: string): string | undefined {
  const parts = path.split("/");
  for (let length = 1; length <= parts.length; length += 1) {
    const part = parts.slice(0, length).join("/");
    const at = join(root, part);
    const found = attempt(() => lstatOf(at));
    if (found === undefined) return undefined;
    const target = found.isSymbolicLink() ? attempt(() => statSync(at)) : found;
    if (target === undefined) return `${nameOf(part, path)} is a broken symbolic link`;
    if (length < parts.length && !target.isDirectory()) return `${part} is not a folder`;
    if (length === parts.length && target.isDirectory()) return "it is a folder";
    if (length === parts.length && !target.isFile()) return "it is not a regular file";
  }
  return undefined;
}

function nameOf(part: string, path: string): string {
  return part === path ? "it" : part;
}

function lstatOf(path: string) {
  return lstatSync(path, { throwIfNoEntry: false });
}

function attempt<Found>(find: () => Found): Found | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}

function readIfPresent(path: string): string | undefined {
  try {
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Reads regular files in regular folders. The states of folders are cached.
 *
 * Anything else, such as a symbolic link, is treated as missing; callers that need the difference must check it themselves.
 */
export class PlainFolders {
  readonly #root: string;
  readonly #known = new Map<string, FolderState>([[".", "plain"]]);

  constructor(root: string) {
    this.#root = root;
  }

  /** Returns the text of a file; undefined if it does not exist. */
  read(path: string): string | undefined {
    return this.hasFile(path) ? readFileSync(join(this.#root, path), "utf8") : undefined;
  }

  /** Returns the digest of a file; undefined if it does not exist. */
  digestOf(path: string): string | undefined {
    return this.hasFile(path) ? digestOf(readFileSync(join(this.#root, path))) : undefined;
  }

  hasFile(path: string): boolean {
    return this.statsOf(path) !== undefined;
  }

  /** Returns the state of a file; undefined if it does not exist. */
  statsOf(path: string): Stats | undefined {
    const stats = INSIDE.test(path) && this.#folderState(dirname(path)) === "plain" ? this.#stateOf(path) : undefined;
    return stats?.isFile() === true ? stats : undefined;
  }

  /** Returns whether a path is inside the project and nothing exists there. */
  isFree(path: string): boolean {
    if (!INSIDE.test(path)) return false;
    const around = this.#folderState(dirname(path));
    return around === "absent" || (around === "plain" && this.#stateOf(path) === undefined);
  }

  #folderState(folder: string): FolderState {
    const known = this.#known.get(folder);
    if (known !== undefined) return known;
    let state = this.#folderState(dirname(folder));
    if (state === "plain") {
      const stats = this.#stateOf(folder);
      if (stats === undefined) state = "absent";
      else if (!stats.isDirectory()) state = "other";
    }
    this.#known.set(folder, state);
    return state;
  }

  #stateOf(path: string): Stats | undefined {
    return lstatSync(join(this.#root, path), { throwIfNoEntry: false });
  }
}

/** State of the path of a folder. */
type FolderState = "plain" | "absent" | "other";

/** A path without `.` and `..`, which cannot lead out of the project. */
const INSIDE = /^(?!\.{1,2}(?:\/|$))[^/\\\0]+(?:\/(?!\.{1,2}(?:\/|$))[^/\\\0]+)*$/;
