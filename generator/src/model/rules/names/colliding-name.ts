import { formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import type { Place } from "../../../input/yaml/yaml-document.js";
import {
  functionsOf,
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
  type Rule,
} from "../../build/resolved-project.js";

/** What the names of the types of a dependent end in. */
const SUFFIXES = ["Secondary", "Arguments", "Desired", "Condition", "ConditionArguments"];

/** What the names of the types of an external dependent end in besides. */
const EXTERNAL_SUFFIXES = ["Resource", "Draft", "Kept", "External"];

/** What the names of the types of filters end in, where there are filters. */
const FILTER_SUFFIXES = ["Filter", "UpdateFilter", "DeleteFilter"];

/** What the names of the types of an event source end in. */
const SOURCE_SUFFIXES = ["Resource", "Mapper", "PrimaryMapper", "Source"];

/** What the generated types of a controller import. */
const IMPORTED = [
  "Condition",
  "ConditionArguments",
  "ConditionResult",
  "DependentArguments",
  "DependentMatcher",
  "Desired",
  "DetailOf",
  "Explicit",
  "ExplicitReconciler",
  "FetchContext",
  "ItemsOf",
  "MapperContext",
  "PrimaryPatch",
  "ReconcileArguments",
  "Reconciler",
  "UntypedInput",
  "UntypedResource",
  "WorkflowInvocation",
];

/** What the names of the types of the primary end in. */
const PRIMARY_SUFFIXES = [
  "Index",
  "Dependents",
  "Sources",
  "Items",
  "Lookups",
  "Details",
  "Reconciler",
  "ReconcileArguments",
];

/**
 * Finds names from which the same file or type would be made, and event sources that are called like dependents.
 *
 * Compares without case and separators: some file systems do not tell `fooBar` from `foobar`, and neither do people.
 */
export const checkCollidingName: Rule = ({ controllers }) => {
  const folders = new Names("controller");
  return controllers.flatMap((controller) => {
    const { spec } = controller;
    const place = spec.document.valueAt(["metadata", "name"]);
    return [
      ...folders.add(spec.name, spec.name, place),
      ...checkMembers(controller),
      ...controller.eventSources.flatMap((source) => checkFunctions(source, controller)),
    ];
  });
};

// Dependents and event sources are fields of one object: `secondary`.
function checkMembers({
  spec: { document, controller },
  primary,
  dependents,
  eventSources,
}: ResolvedController): Diagnostic[] {
  const members = new Names("member");
  const types = new Names("type");
  const withFilters = (suffixes: readonly string[], filters: object | undefined) =>
    filters === undefined ? suffixes : [...suffixes, ...FILTER_SUFFIXES];
  const ofPrimary = withFilters(PRIMARY_SUFFIXES, controller.filters).map((suffix) => `${primary?.kind}${suffix}`);
  const operations = dependents.flatMap(ownOperationsOf).map((operation) => `${operation}Arguments`);
  const existing = dependents.some(hasExistingCondition) ? ["ExistingArguments", "ExistingCondition"] : [];
  for (const name of [...IMPORTED, ...operations, ...existing, ...ofPrimary]) types.reserve(name);
  const check = (
    noun: string,
    suffixes: readonly string[],
    { name, path }: Pick<ResolvedDependent, "name" | "path">,
  ) => {
    const place = document.keyAt(path);
    const alike = members.add(name, `${noun} ${quote(name)}`, place);
    if (alike.length > 0) return alike;
    return suffixes.flatMap((suffix) => types.add(name + suffix, `${noun} ${quote(name)}`, place)).slice(0, 1);
  };
  return [
    ...dependents.flatMap((each) => check("dependent", withFilters(suffixesOf(each), each.spec.filters), each)),
    ...eventSources.flatMap((each) => check("event source", withFilters(SOURCE_SUFFIXES, each.spec.filters), each)),
  ];
}

function ownOperationsOf({ spec: { operations = {} } }: ResolvedDependent): string[] {
  return Object.entries(operations).flatMap(([name, value]) => (value === "own" ? name : []));
}

function hasExistingCondition({ spec: { existing } }: ResolvedDependent): boolean {
  return typeof existing === "object";
}

function suffixesOf(dependent: ResolvedDependent): string[] {
  const { bulk, matcher, external } = dependent.spec;
  return [
    ...SUFFIXES,
    ...(bulk === undefined ? [] : ["Items"]),
    ...(matcher === undefined ? [] : ["Matcher"]),
    ...(typeof dependent.spec.deletePostcondition === "object" ? ["DeletionCondition", "DeletionArguments"] : []),
    ...(hasExistingCondition(dependent) ? ["Existing", "ExistingArguments"] : []),
    ...(ownOperationsOf(dependent).length === 0 ? [] : ["Operations"]),
    ...(external === undefined ? [] : EXTERNAL_SUFFIXES),
  ];
}

// Both are functions of one file.
function checkFunctions(source: ResolvedEventSource, { spec: { document } }: ResolvedController): Diagnostic[] {
  const [mapper, other] = functionsOf(source);
  if (mapper === undefined || other === undefined || mapper.name !== other.name) return [];
  const message = `function ${quote(other.name)} cannot be both mapping and primaryToSecondary of ${quote(source.name)}`;
  return [{ severity: "error", rule: "colliding-name", message, ...document.valueAt(other.path) }];
}

/** The names that were used so far for one kind of thing. */
class Names {
  readonly #what: string;
  readonly #used = new Map<string, { name: string; user: string; place?: Place }>();

  constructor(what: string) {
    this.#what = what;
  }

  reserve(name: string): void {
    this.#used.set(plain(name), { name, user: "generated code" });
  }

  add(name: string, user: string, place: Place): Diagnostic[] {
    const other = this.#used.get(plain(name));
    if (other === undefined) {
      this.#used.set(plain(name), { name, user, place });
      return [];
    }
    // The same name twice is reported as such.
    if (other.user === user) return [];
    const first = other.place === undefined ? "" : `, first at ${formatPosition(other.place.position)}`;
    return [
      { severity: "error", rule: "colliding-name", message: `${this.#describe(name, user, other)}${first}`, ...place },
    ];
  }

  #describe(name: string, user: string, other: { readonly name: string; readonly user: string }): string {
    if (this.#what === "type") return `${user} needs another name: the type ${capital(name)} belongs to ${other.user}`;
    if (this.#what === "controller")
      return `controller ${quote(name)} differs from ${quote(other.name)} only in case and separators`;
    if (name === other.name) return `${user} needs another name: it belongs to ${other.user}`;
    return `${user} differs from ${other.user} only in case and separators`;
  }
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
