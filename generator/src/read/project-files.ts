import { isUtf8 } from "node:buffer";
import { type Dirent, readFileSync, readdirSync } from "node:fs";
import { readFile, readdir, realpath, stat } from "node:fs/promises";
import { basename, isAbsolute, join, relative, resolve, sep } from "node:path";
import { type Diagnostic, positionAfter, quote, slashed } from "../diagnostic.js";
import { digestOf } from "../stage.js";
import { isSystemError, reasonOf } from "../system-error.js";
import { UNREADABLE_FILE } from "./rules.js";
import { isRecord } from "./yaml/values.js";

/** A text file of a project. */
export interface ProjectFile {
  /** Relative to the project, with forward slashes. */
  readonly file: string;
  readonly text: string;
}

/** Tells whether a file of a project is a workflow spec: `workflow.yaml` and `*.workflow.yaml`, or `.yml`, or `.json`, directly in it. */
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

/** Lists the files in which a project keeps its CRDs, everything below `crds`, or returns why that is not possible. */
export async function findCrdFiles(project: string): Promise<string[] | Diagnostic> {
  try {
    return await listCrdFiles(project);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const message = `"crds" cannot be read: ${reasonOf(error)}`;
    return { ...UNREADABLE_FILE.violation, message };
  }
}

/** Lists everything below `crds` that is YAML or JSON. */
export async function listCrdFiles(project: string): Promise<string[]> {
  if (!(await isDirectory(join(project, "crds")))) return [];
  return entriesBelow(project, "crds")
    .flatMap(([path]) => (/\.(?:yaml|yml|json)$/.test(path) ? [path] : []))
    .sort();
}

/**
 * Lists what is in a folder of a project and in the folders in it, by path, but for folders themselves and what is in `skipped`.
 *
 * The calls are synchronous: a project has a folder for each controller, and handing a call to another thread takes longer than most of them.
 */
export function entriesBelow(project: string, folder: string, skipped?: string): (readonly [path: string, Dirent])[] {
  return readdirSync(join(project, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (!entry.isDirectory()) return [[path, entry] as const];
    return path === skipped ? [] : entriesBelow(project, path, skipped);
  });
}

/** Tells whether a path is a directory. */
export async function isDirectory(path: string): Promise<boolean> {
  return (await statOf(path))?.isDirectory() ?? false;
}

/** Returns a path relative to the project with forward slashes; undefined if it leads outside. */
export function pathInProject(project: string, path: string): string | undefined {
  const inside = relative(resolve(project), resolve(project, path));
  if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside)) return undefined;
  return slashed(inside);
}

/** The name of the package of a project, or of its folder where no package.json says it. */
export interface PackageName {
  readonly name: string;
  /** Says that package.json cannot be read, or is no JSON: what is generated under another name would replace nothing that runs. */
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
    // Reading a named pipe would wait for ever.
    if (!(await stat(file)).isFile()) return fail('"package.json" is not a file');
    // Node and npm accept a mark of the byte order.
    text = new TextDecoder().decode(await readFile(file));
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code === "ENOENT" ? ofFolder : fail(`"package.json" cannot be read: ${reasonOf(error)}`);
  }
  try {
    const manifest: unknown = JSON.parse(text);
    return isRecord(manifest) && typeof manifest["name"] === "string" ? { name: manifest["name"] } : ofFolder;
  } catch (error) {
    const { describeJsonError } = await import("./yaml/parse-yaml.js");
    return { ...ofFolder, problem: describeJsonError("package.json", text, error as SyntaxError) };
  }
}

/** Reads a file of a project, which has to be UTF-8, or returns the problem. */
export async function readProjectFile(project: string, file: string): Promise<ProjectFile | Diagnostic> {
  const path = resolve(project, file);
  const fail = (message: string): Diagnostic => ({ ...UNREADABLE_FILE.violation, message });
  try {
    if (!(await stat(path)).isFile()) return fail(`${quote(file)} is not a file`);
    const text = decodeText(file, await readFile(await realpath(path)));
    return typeof text === "string" ? { file, text } : text;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === "ENOENT") return fail(`there is no file ${quote(file)}`);
    return fail(`${quote(file)} cannot be read: ${reasonOf(error)}`);
  }
}

/** Reads a file again of which the digest is known. */
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

/** Lists the code that the user has written: everything below `src`, or another folder, that is not generated. */
export async function listSourceFiles(project: string, folder = "src"): Promise<string[]> {
  if (!(await isDirectory(join(project, folder)))) return [];
  return entriesBelow(project, folder, "src/generated")
    .flatMap(([path, entry]) => (entry.isFile() && /\.m?ts$/.test(path) && !/\.d\.m?ts$/.test(path) ? [path] : []))
    .sort();
}

/** Reads the code that the user has written. */
export async function readSources(project: string, folder = "src"): Promise<ProjectFile[]> {
  const files = await listSourceFiles(project, folder);
  const read = await Promise.all(files.map((file) => readProjectFile(project, file)));
  // What cannot be read as text has no say; the compiler will not like it either.
  return read.flatMap((file) => ("rule" in file ? [] : [file]));
}

/** Decodes the bytes of a file, which have to be UTF-8, or says where they are not. */
export function decodeText(file: string, bytes: Uint8Array): string | Diagnostic {
  // A replaced character would end up in generated code.
  if (isUtf8(bytes)) return withoutMark(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
  const valid = validPartOf(bytes);
  const byte = bytes[Buffer.byteLength(valid)] ?? 0;
  return {
    ...UNREADABLE_FILE.violation,
    message: `the file is not UTF-8 text: the byte 0x${byte.toString(16).padStart(2, "0")} starts no valid character`,
    position: positionAfter(file, valid),
    hint: hasMarkOfUtf16(bytes) ? "it is UTF-16; save it as UTF-8" : "save it as UTF-8",
  };
}

/** Returns a text without the mark of its byte order. */
function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/** Returns the characters before the first one that is none. */
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
