// The types that functions take and return, read from the tables of their declarations.
import type { Bindings } from "./bindings.js";
import { KUBERNETES_FUNCTIONS, PATCH_FUNCTIONS } from "./kubernetes-functions.js";
import { STANDARD_FUNCTIONS } from "./standard-functions.js";
import { DYN, isSameType, type CheckedType } from "./types.js";

/** One way to call a function. */
export interface Overload {
  /** The types of the arguments; the first one is that of the target of a method. */
  readonly arguments: readonly CheckedType[];
  readonly isMethod: boolean;
  readonly result: CheckedType;
}

type Overloads = ReadonlyMap<string, readonly Overload[]>;

let known: Overloads | undefined;
let forPatches: Overloads | undefined;

/** Returns the ways to call a function; undefined if there is no such function. `hasPatchTypes` is for mutating policies. */
export function overloadsOf(name: string, hasPatchTypes: boolean): readonly Overload[] | undefined {
  known ??= read(STANDARD_FUNCTIONS + KUBERNETES_FUNCTIONS);
  forPatches ??= read(PATCH_FUNCTIONS);
  return known.get(name) ?? (hasPatchTypes ? forPatches.get(name) : undefined);
}

/** Returns the names of the functions that a rule can call, without operators. */
export function functionNames(): string[] {
  known ??= read(STANDARD_FUNCTIONS + KUBERNETES_FUNCTIONS);
  return [...known.keys()].filter((name) => /^[a-z]/i.test(name));
}

/** Returns the names of types that an expression can compare with `type(x)`. */
export function typeNames(): string[] {
  return [...TYPE_VALUES.keys()];
}

/**
 * Returns the type of the result of a call, given the types of its arguments, the target first; undefined if no overload fits. The first one that
 * fits has the type of the result, unless another one that fits has another type.
 */
export function resultOfCall(
  overloads: readonly Overload[],
  bindings: Bindings,
  { isMethod, all }: { readonly isMethod: boolean; readonly all: readonly CheckedType[] },
): CheckedType | undefined {
  let found: CheckedType | undefined;
  for (const overload of overloads) {
    const renamed = bindings.renaming();
    if (overload.isMethod !== isMethod || !bindings.fits(all, overload.arguments.map(renamed))) continue;
    const result = bindings.resolve(renamed(overload.result));
    found = found === undefined || found.kind === "dyn" || isSameType(found, result) ? (found ?? result) : DYN;
  }
  return found;
}

/** Returns the type of a type that has a name, such as `net.IP`. */
export function typeNamed(name: string): CheckedType | undefined {
  return TYPE_VALUES.get(name);
}

const SCALARS: ReadonlySet<string> = new Set(
  "dyn null bool int uint double string bytes timestamp duration".split(" "),
);

// In the order in which an overload is tried: it matters where nothing is known of a list's items.
const CLASSES: { readonly [name: string]: readonly string[] } = {
  $summed: ["int", "uint", "double", "duration"],
  $compared: ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"],
};

// A line has the name of a function, and its overloads.
function read(table: string): Overloads {
  const lines = table.split("\n").filter((line) => line.trim() !== "");
  return new Map(
    lines.flatMap((line) => {
      const [, names = "", overloads = ""] = /^\s*(\S+)\s+(.*)$/.exec(line) ?? [];
      const each = overloads.split(" | ").flatMap(instancesOf).map(readOverload);
      return names.split(",").map((name): [string, readonly Overload[]] => [name, each]);
    }),
  );
}

function instancesOf(overload: string): string[] {
  const [name] = /\$\w+/.exec(overload) ?? [];
  if (name === undefined) return [overload];
  return (CLASSES[name] ?? []).map((type) => overload.replaceAll(name, type));
}

function readOverload(text: string): Overload {
  const [, target = "", given = "", result = ""] = /^(?:(.+)\.)?\((.*)\) -> (.+)$/.exec(text) ?? [];
  const types = new TypeReader(target === "" ? given : given === "" ? target : `${target}, ${given}`).readAll();
  return { arguments: types, isMethod: target !== "", result: new TypeReader(result).readAll()[0]! };
}

class TypeReader {
  readonly #tokens: string[];

  constructor(text: string) {
    this.#tokens = text.match(/[\w.]+|[(),]/g) ?? [];
  }

  readAll(): CheckedType[] {
    const types: CheckedType[] = [];
    while (this.#tokens.length > 0) {
      types.push(this.#read());
      this.#tokens.shift();
    }
    return types;
  }

  #read(): CheckedType {
    const name = this.#tokens.shift() ?? "";
    if (this.#tokens[0] !== "(") return typeOfName(name);
    const inner: CheckedType[] = [];
    while (this.#tokens.shift() !== ")" && this.#tokens.length > 0) inner.push(this.#read());
    const [first, second] = inner as [CheckedType, CheckedType];
    if (name === "map") return { kind: "map", key: first, element: second };
    return name === "type" ? { kind: "type", of: first } : { kind: name as "list" | "optional", element: first };
  }
}

function typeOfName(name: string): CheckedType {
  if (name === "type") return { kind: "type" };
  if (/^[A-Z]$/.test(name)) return { kind: "parameter", name };
  return SCALARS.has(name) ? ({ kind: name } as CheckedType) : { kind: "opaque", name };
}

const TYPE_VALUES: ReadonlyMap<string, CheckedType> = new Map(
  [
    ...["bool", "bytes", "double", "int", "string", "uint", "net.IP", "net.CIDR", "type"].map((name) => [name, name]),
    ["null_type", "null"],
    ["optional_type", "optional(V)"],
    ["google.protobuf.Duration", "duration"],
    ["google.protobuf.Timestamp", "timestamp"],
    ["list", "list(A)"],
    ["map", "map(A, B)"],
  ].map(([name, type]) => [name!, { kind: "type", of: new TypeReader(type!).readAll()[0]! }]),
);
