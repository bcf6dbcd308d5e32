// The declarations that expressions can refer to: the functions of CEL and Kubernetes with their overloads, and the types that can be named or
// constructed.
import { DYN, isSameType, type Bindings, type CheckedType } from "./types.js";
import { LOOP_NAMES } from "../expression/macros.js";

/** An overload of a function. */
interface Overload {
  /** The types of the arguments, preceded by the type of the target if it is a method. */
  readonly arguments: readonly CheckedType[];
  readonly isMethod: boolean;
  readonly result: CheckedType;
}

type Overloads = ReadonlyMap<string, readonly Overload[]>;

let known: Overloads | undefined;
let forPatches: Overloads | undefined;

/** Returns the overloads of a function; undefined if it is not declared. `hasPatchTypes` adds the functions of mutating policies. */
export function overloadsOf(name: string, hasPatchTypes: boolean): readonly Overload[] | undefined {
  known ??= read(STANDARD_FUNCTIONS + KUBERNETES_FUNCTIONS);
  forPatches ??= read(PATCH_FUNCTIONS);
  return known.get(name) ?? (hasPatchTypes ? forPatches.get(name) : undefined);
}

/** Returns the names of the functions that a rule can call, without operators. */
function functionNames(): string[] {
  known ??= read(STANDARD_FUNCTIONS + KUBERNETES_FUNCTIONS);
  return [...known.keys()].filter((name) => /^[a-z]/i.test(name));
}

/** Returns the names of the types that an expression can compare with `type(x)`. */
function typeNames(): string[] {
  return [...TYPE_VALUES.keys()];
}

/**
 * Returns the type of a call, given the types of its arguments, preceded by that of the target. It is the result type of the first matching overload,
 * or dyn if other matching overloads have different result types. Returns undefined if no overload matches.
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

/** Returns the type of a type name, such as `net.IP`. */
export function typeNamed(name: string): CheckedType | undefined {
  return TYPE_VALUES.get(name);
}

const SCALARS: ReadonlySet<string> = new Set(
  "dyn null bool int uint double string bytes timestamp duration".split(" "),
);

// Overloads are tried in this order. It is significant if the element type of a list is unknown.
const CLASSES: { readonly [name: string]: readonly string[] } = {
  $summed: ["int", "uint", "double", "duration"],
  $compared: ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"],
};

// Each line consists of function names and their overloads.
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

// The functions of CEL and its extensions, in the order in which kube-apiserver tries their overloads. A capital letter is a type parameter;
// `$compared` stands for each comparable type, and `$summed` for each type that can be added.

const ARITHMETIC = "(double, double) -> double | (int, int) -> int | (uint, uint) -> uint";
const ORDER = [
  "(bool, bool) -> bool | (int, int) -> bool | (int, double) -> bool | (int, uint) -> bool | (uint, uint) -> bool",
  "(uint, double) -> bool | (uint, int) -> bool | (double, double) -> bool | (double, int) -> bool",
  "(double, uint) -> bool | (string, string) -> bool | (bytes, bytes) -> bool | (timestamp, timestamp) -> bool",
  "(duration, duration) -> bool",
].join(" | ");
const PART_OF_TIME = "timestamp.() -> int | timestamp.(string) -> int";

const OPERATORS = `
!_                    (bool) -> bool
-_                    (double) -> double | (int) -> int
@in                   (A, list(A)) -> bool | (A, map(A, B)) -> bool
_==_,_!=_             (A, A) -> bool
_<_,_<=_,_>_,_>=_     ${ORDER}
_*_,_/_               ${ARITHMETIC}
_%_                   (int, int) -> int | (uint, uint) -> uint
_-_                   (double, double) -> double | (duration, duration) -> duration | (int, int) -> int | (timestamp, duration) -> timestamp | (timestamp, timestamp) -> duration | (uint, uint) -> uint
_+_                   (bytes, bytes) -> bytes | (double, double) -> double | (duration, duration) -> duration | (duration, timestamp) -> timestamp | (timestamp, duration) -> timestamp | (int, int) -> int | (list(A), list(A)) -> list(A) | (string, string) -> string | (uint, uint) -> uint
_?_:_                 (bool, A, A) -> A
_[_]                  (list(A), int) -> A | (map(A, B), A) -> B | (optional(list(V)), int) -> optional(V) | (optional(map(K, V)), K) -> optional(V)
_[?_]                 (list(V), int) -> optional(V) | (optional(list(V)), int) -> optional(V) | (map(K, V), K) -> optional(V) | (optional(map(K, V)), K) -> optional(V)
@not_strictly_false   (bool) -> bool
`;

const CONVERSIONS = `
bool                  (bool) -> bool | (string) -> bool
bytes                 (bytes) -> bytes | (string) -> bytes
double                (double) -> double | (int) -> double | (string) -> double | (uint) -> double
duration              (duration) -> duration | (int) -> duration | (string) -> duration
dyn                   (A) -> dyn
int                   (int) -> int | (double) -> int | (duration) -> int | (string) -> int | (timestamp) -> int | (uint) -> int
string                (string) -> string | (bool) -> string | (bytes) -> string | (double) -> string | (duration) -> string | (int) -> string | (timestamp) -> string | (uint) -> string | (net.IP) -> string | (net.CIDR) -> string
timestamp             (timestamp) -> timestamp | (int) -> timestamp | (string) -> timestamp
type                  (A) -> type(A)
uint                  (uint) -> uint | (double) -> uint | (int) -> uint | (string) -> uint
`;

const TIMES = `
getDate,getDayOfMonth,getDayOfWeek,getDayOfYear,getFullYear,getMonth  ${PART_OF_TIME}
getHours,getMilliseconds,getMinutes,getSeconds                        ${PART_OF_TIME} | duration.() -> int
`;

const STRINGS = `
charAt                string.(int) -> string
contains              string.(string) -> bool
endsWith,startsWith   string.(string) -> bool
format                string.(list(dyn)) -> string
join                  list(string).() -> string | list(string).(string) -> string
lowerAscii            string.() -> string
matches               (string, string) -> bool | string.(string) -> bool
replace               string.(string, string) -> string | string.(string, string, int) -> string
size                  (bytes) -> int | bytes.() -> int | (list(A)) -> int | list(A).() -> int | (map(A, B)) -> int | map(A, B).() -> int | (string) -> int | string.() -> int
split                 string.(string) -> list(string) | string.(string, int) -> list(string)
strings.quote         (string) -> string
substring             string.(int) -> string | string.(int, int) -> string
trim,upperAscii       string.() -> string
`;

const LISTS = `
distinct,reverse      list(T).() -> list(T)
first,last            list(V).() -> optional(V)
flatten               list(list(T)).() -> list(T) | list(dyn).(int) -> list(dyn)
lists.range           (int) -> list(int)
slice                 list(T).(int, int) -> list(T)
sort                  list($compared).() -> list($compared)
@sortByAssociatedKeys list(T).(list($compared)) -> list(T)
sets.contains,sets.equivalent,sets.intersects  (list(T), list(T)) -> bool
cel.@mapInsert        (map(K, V), K, V) -> map(K, V) | (map(K, V), map(K, V)) -> map(K, V)
`;

const OPTIONALS = `
hasValue              optional(V).() -> bool
optional.none         () -> optional(V)
optional.of           (V) -> optional(V)
optional.ofNonZeroValue  (V) -> optional(V)
optional.unwrap       (list(optional(V))) -> list(V)
or                    optional(V).(optional(V)) -> optional(V)
orValue               optional(V).(V) -> V
unwrapOpt             list(optional(V)).() -> list(V)
value                 optional(V).() -> V
`;

const STANDARD_FUNCTIONS = OPERATORS + CONVERSIONS + TIMES + STRINGS + LISTS + OPTIONALS;

// The functions of the Kubernetes CEL libraries, in the same notation.

const KUBERNETES_LISTS = `
indexOf,lastIndexOf   list(A).(A) -> int | string.(string) -> int | string.(string, int) -> int
isSorted              list($compared).() -> bool
max,min               list($compared).() -> $compared
sum                   list($summed).() -> $summed
`;

const KUBERNETES_STRINGS = `
find                  string.(string) -> string
findAll               string.(string) -> list(string) | string.(string, int) -> list(string)
isURL                 (string) -> bool
url                   (string) -> kubernetes.URL
getEscapedPath,getHost,getHostname,getPort,getScheme  kubernetes.URL.() -> string
getQuery              kubernetes.URL.() -> map(string, list(string))
format.byte,format.date,format.datetime,format.labelValue,format.qualifiedName,format.uri,format.uuid  () -> kubernetes.NamedFormat
format.dns1035Label,format.dns1035LabelPrefix,format.dns1123Label,format.dns1123LabelPrefix            () -> kubernetes.NamedFormat
format.dns1123Subdomain,format.dns1123SubdomainPrefix  () -> kubernetes.NamedFormat
format.named          (string) -> optional(kubernetes.NamedFormat)
validate              kubernetes.NamedFormat.(string) -> optional(list(string))
`;

const NETWORKS = `
cidr                  (string) -> net.CIDR
containsCIDR          net.CIDR.(string) -> bool | net.CIDR.(net.CIDR) -> bool
containsIP            net.CIDR.(string) -> bool | net.CIDR.(net.IP) -> bool
family                net.IP.() -> int
ip                    (string) -> net.IP | net.CIDR.() -> net.IP
ip.isCanonical,isCIDR,isIP  (string) -> bool
isGlobalUnicast,isLinkLocalMulticast,isLinkLocalUnicast,isLoopback,isUnspecified  net.IP.() -> bool
masked                net.CIDR.() -> net.CIDR
prefixLength          net.CIDR.() -> int
`;

const NUMBERS = `
quantity              (string) -> kubernetes.Quantity
isQuantity            (string) -> bool
add,sub               kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity | kubernetes.Quantity.(int) -> kubernetes.Quantity
asApproximateFloat    kubernetes.Quantity.() -> double
asInteger             kubernetes.Quantity.() -> int
isInteger             kubernetes.Quantity.() -> bool
sign                  (kubernetes.Quantity) -> int
compareTo             kubernetes.Quantity.(kubernetes.Quantity) -> int | kubernetes.Semver.(kubernetes.Semver) -> int
isGreaterThan,isLessThan  kubernetes.Quantity.(kubernetes.Quantity) -> bool | kubernetes.Semver.(kubernetes.Semver) -> bool
semver                (string) -> kubernetes.Semver | (string, bool) -> kubernetes.Semver
isSemver              (string) -> bool | (string, bool) -> bool
major,minor,patch     kubernetes.Semver.() -> int
`;

const AUTHORIZATION = `
group                 kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.GroupCheck
path                  kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.PathCheck
serviceAccount        kubernetes.authorization.Authorizer.(string, string) -> kubernetes.authorization.Authorizer
resource              kubernetes.authorization.GroupCheck.(string) -> kubernetes.authorization.ResourceCheck
fieldSelector,labelSelector,name,namespace,subresource  kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
check                 kubernetes.authorization.PathCheck.(string) -> kubernetes.authorization.Decision | kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.Decision
allowed,errored       kubernetes.authorization.Decision.() -> bool
error,reason          kubernetes.authorization.Decision.() -> string
`;

const KUBERNETES_FUNCTIONS = KUBERNETES_LISTS + KUBERNETES_STRINGS + NETWORKS + NUMBERS + AUTHORIZATION;

/** Functions that are available in mutating admission policies only. */
const PATCH_FUNCTIONS = `
jsonpatch.escapeKey   (string) -> string
`;

/** A type that can be constructed. */
interface MessageType {
  readonly type: CheckedType;
  /** Returns the type of a field; undefined if there is no such field. */
  readonly field: (name: string) => CheckedType | undefined;
}

const LIST: CheckedType = { kind: "list", element: DYN };
const STRUCT: CheckedType = { kind: "map", key: { kind: "string" }, element: DYN };

// The types that these messages evaluate to. Their fields are not checked.
const WELL_KNOWN: { readonly [name: string]: CheckedType } = {
  Any: DYN,
  BoolValue: { kind: "bool" },
  BytesValue: { kind: "bytes" },
  DoubleValue: { kind: "double" },
  Duration: { kind: "duration" },
  FloatValue: { kind: "double" },
  Int32Value: { kind: "int" },
  Int64Value: { kind: "int" },
  ListValue: LIST,
  StringValue: { kind: "string" },
  Struct: STRUCT,
  Timestamp: { kind: "timestamp" },
  UInt32Value: { kind: "uint" },
  UInt64Value: { kind: "uint" },
  Value: DYN,
};
const PATCH: { readonly [name: string]: CheckedType } = {
  op: { kind: "string" },
  path: { kind: "string" },
  from: { kind: "string" },
  value: DYN,
};

/** Returns a type that can be constructed; undefined if it is unknown. `Object{…}` and `JSONPatch{…}` require `hasPatchTypes`. */
export function messageNamed(name: string, hasPatchTypes: boolean): MessageType | undefined {
  const [, wellKnown = ""] = /^\.?google\.protobuf\.(\w+)$/.exec(name) ?? [];
  if (Object.hasOwn(WELL_KNOWN, wellKnown)) return { type: WELL_KNOWN[wellKnown]!, field: () => DYN };
  if (!hasPatchTypes) return undefined;
  const type = { kind: "object", name, field: () => DYN } as const;
  if (name === "JSONPatch") return { type, field: (field) => (Object.hasOwn(PATCH, field) ? PATCH[field] : undefined) };
  return /^Object(\.\w+)*$/.test(name) ? { type, field: () => DYN } : undefined;
}

/** The names that an expression can refer to. */
export interface DeclaredNames {
  /** Functions and macros. */
  readonly functions: readonly string[];
  /** Variables of the rule and of its macros, and type names. */
  readonly variables: readonly string[];
}

const MACRO_VARIABLES = new RegExp(`\\.(?:${LOOP_NAMES.join("|")})\\(\\s*(\\w+)\\s*,(?:\\s*(\\w+)\\s*,)?`, "g");

/** Lists the names that a CRD validation rule can refer to, for suggestions in place of an undeclared name. */
export function declaredNames(rule: string): DeclaredNames {
  const ofMacros = [...rule.matchAll(MACRO_VARIABLES)].flatMap(([, first, second]) => [first, second]);
  return {
    functions: [...functionNames(), ...LOOP_NAMES, "has"],
    variables: ["self", "oldSelf", ...ofMacros.filter((name) => name !== undefined), ...typeNames()],
  };
}
