import { type Diagnostic, formatPosition, quote } from "../diagnostic.js";
import {
  type Check,
  type ResolvedController,
  type ResolvedDependent,
  type ResolvedEventSource,
  checkOfController,
  conditionsOf,
  filtersOf,
  functionsOf,
  isDeletedByOperator,
} from "../model/resolved-project.js";
import { isDevice, isReservedController, reservedWords } from "../model/typescript.js";
import type { Place, YamlPath } from "../read/yaml/yaml-document.js";
import {
  COLLIDING_NAME,
  DUPLICATE_CONTROLLER,
  FORMER_NAME,
  RESERVED_NAME,
  SHARED_FINALIZER,
  UNQUALIFIED_FINALIZER,
} from "./rules.js";

/** Members of every JavaScript object: `secondary.toString` exists without a dependent of this name. */
const OBJECT_MEMBERS: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

/** Reports names that cannot be used for a file, a property, or a function. */
export const checkReservedName = checkOfController((controller) => {
  const { spec, dependents, eventSources } = controller;
  const functions = [
    ...filtersOf(controller).map(({ filter, path }) => ({ name: filter.function, owner: path })),
    ...dependents.map(({ spec: { matcher }, path }) => ({ name: matcher?.function, owner: [...path, "matcher"] })),
    ...Object.entries(spec.controller.indexes ?? {}).map(([index, each]) => ({
      name: each.function,
      owner: ["spec", "controller", "indexes", index],
    })),
  ].flatMap(({ name, owner }) => (name === undefined ? [] : [{ name, path: [...owner, "function"] }]));
  const conditions = dependents
    .flatMap(conditionsOf)
    .flatMap(({ condition, path }) => (condition.kind === "function" ? [{ name: condition.name, path }] : []));
  return [
    ...(isReservedController(spec.name)
      ? [reserved(spec.document.valueAt(["metadata", "name"]), `controller ${quote(spec.name)}`)]
      : []),
    ...[...dependents, ...eventSources]
      .filter(({ name }) => OBJECT_MEMBERS.has(name) || isDevice(name))
      .map(({ name, path }) => reserved(spec.document.keyAt(path), `${nounOf(path)} ${quote(name)}`)),
    ...[...conditions, ...functions, ...eventSources.flatMap(functionsOf)]
      .filter(({ name }) => reservedWords.has(name))
      .map(({ name, path }) => reserved(spec.document.valueAt(path), `function ${quote(name)}`)),
  ];
});

/** Returns the noun for a member of a spec, by its path. */
function nounOf([, list]: YamlPath): string {
  return list === "eventSources" ? "event source" : "dependent";
}

function reserved(place: Place, what: string): Diagnostic {
  return {
    ...RESERVED_NAME.violation,
    message: `the name of ${what} is reserved in TypeScript, in file systems or in src/`,
    ...place,
    hint: "choose another name",
  };
}

/** Suffixes of the types generated for a dependent. */
const SUFFIXES = ["Secondary", "Arguments", "Desired", "Condition", "ConditionArguments"];

/** Additional suffixes of the types generated for an external dependent. */
const EXTERNAL_SUFFIXES = ["Resource", "Draft", "Kept", "External"];

/** Suffixes of the filter types, generated for members with filters. */
const FILTER_SUFFIXES = ["Filter", "UpdateFilter", "DeleteFilter"];

/** Suffixes of the types generated for an event source. */
const SOURCE_SUFFIXES = ["Resource", "Mapper", "PrimaryMapper", "Source"];

/** Names that the generated types of a controller may import. */
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

/** Suffixes of the types generated for the primary. */
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
 * Reports names that would produce the same file or type, and event sources named like dependents.
 *
 * The comparison ignores case and separators: case-insensitive file systems treat `fooBar` and `foobar` as the same file.
 */
export const checkCollidingName: Check = ({ controllers }) => {
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

// Dependents and event sources are fields of the same object, `secondary`.
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

// Both functions would be exported from the same file.
function checkFunctions(source: ResolvedEventSource, { spec: { document } }: ResolvedController): Diagnostic[] {
  const [mapper, other] = functionsOf(source);
  if (mapper === undefined || other === undefined || mapper.name !== other.name) return [];
  const message = `function ${quote(other.name)} cannot be both mapping and primaryToSecondary of event source ${quote(source.name)}`;
  return [{ ...COLLIDING_NAME.violation, message, ...document.valueAt(other.path), hint: "use two functions" }];
}

/** The names that are already taken within one namespace, such as the types of a controller. */
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
    // Another rule reports a name that is used twice.
    if (other.user === user) return [];
    const first = other.place === undefined ? "" : `, first at ${formatPosition(other.place.position)}`;
    const message = `${this.#describe(name, user, other)}${first}`;
    const hint = other.place === undefined ? "use another name" : "rename one of the two";
    return [{ ...COLLIDING_NAME.violation, message, ...place, hint }];
  }

  #describe(name: string, user: string, other: { readonly name: string; readonly user: string }): string {
    if (this.#what === "type")
      return `${user} needs another name: type ${capital(name)} is already used by ${other.user}`;
    if (this.#what === "controller")
      return `controller ${quote(name)} differs from ${quote(other.name)} only in case and separators`;
    if (name === other.name) return `${user} needs another name: it is already used by ${other.user}`;
    return `${user} differs from ${other.user} only in case and separators`;
  }
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** Reports controllers with the same name, whose generated files would overwrite each other. */
export const checkDuplicateController: Check = ({ controllers }) => {
  const names = new Map<string, Place>();
  return controllers.flatMap(({ spec: { name, document } }): Diagnostic[] => {
    const place = document.valueAt(["metadata", "name"]);
    const first = names.get(name);
    if (first === undefined) {
      names.set(name, place);
      return [];
    }
    const message = `controller ${quote(name)} is already defined at ${formatPosition(first.position)}`;
    return [{ ...DUPLICATE_CONTROLLER.violation, message, ...place, hint: "rename one of the two controllers" }];
  });
};

/** Reports former names that are in use: two controllers would manage the same objects. */
export const checkFormerName: Check = ({ controllers }) => {
  const present = new Set(controllers.map(({ spec }) => spec.name));
  const claimed = new Map<string, { readonly controller: string; readonly place: Place }>();
  return controllers.flatMap(({ spec: { name, controller, document } }) =>
    (controller.formerNames ?? []).flatMap((former, index): Diagnostic[] => {
      const place = document.valueAt(["spec", "controller", "formerNames", index]);
      const fail = (message: string): Diagnostic[] => [
        { ...FORMER_NAME.violation, message, ...place, hint: `remove ${quote(former)} from formerNames` },
      ];
      if (former === name) return fail(`${quote(former)} is the current name of the controller`);
      if (present.has(former)) return fail(`${quote(former)} is the name of another controller`);
      const other = claimed.get(former);
      if (other === undefined) {
        claimed.set(former, { controller: name, place });
        return [];
      }
      const { position } = other.place;
      return fail(
        `${quote(former)} is also a former name of controller ${quote(other.controller)}, at ${formatPosition(position)}: ` +
          "its objects can only belong to one of them",
      );
    }),
  );
};

/** Reports finalizers without a domain. The API server rejects them on built-in kinds and warns about them on custom resources. */
export const checkUnqualifiedFinalizer: Check = ({ controllers }) =>
  controllers.flatMap(({ primary, spec }): Diagnostic[] => {
    const { finalizer, formerFinalizers = [] } = spec.controller;
    if (primary === undefined) return [];
    const former = formerFinalizers.map((name, index) => ({ name, path: ["formerFinalizers", index] as YamlPath }));
    const own = finalizer === undefined ? [] : [{ name: finalizer, path: ["finalizer"] as YamlPath }];
    // A former finalizer of a custom resource may come from another operator, so its name cannot be changed.
    const checked = primary.isCustom ? own : [...own, ...former];
    return checked.flatMap(({ name, path }): Diagnostic[] => {
      if (name.includes("/")) return [];
      const problem = primary.isCustom
        ? "another operator may use the same name and remove it"
        : `the API server rejects it on ${primary.plural}, a built-in kind`;
      return [
        {
          severity: primary.isCustom ? "warning" : "error",
          ...UNQUALIFIED_FINALIZER.violation,
          about: spec.name,
          message: `finalizer ${quote(name)} has no domain: ${problem}`,
          ...spec.document.valueAt(["spec", "controller", ...path]),
          hint: "use a name with a domain, such as webpages.example.com/finalizer",
        },
      ];
    });
  });

/**
 * Reports controllers that clean up the same primaries under one finalizer: the first to remove it lets the primary go before the other has cleaned
 * up.
 *
 * Only the code of a reconciler shows whether it has a cleanup function. The operator detects that case at startup and exits.
 */
export const checkSharedFinalizer: Check = ({ controllers }) => {
  const known = new Map<string, ResolvedController[]>();
  return controllers.flatMap((controller): Diagnostic[] => {
    const { primary, spec } = controller;
    if (primary === undefined || spec.controller.onAllEvents === true) return [];
    const { group, plural } = primary;
    const qualified = group === "" ? plural : `${plural}.${group}`;
    const domain = qualified.includes(".") ? qualified : `${qualified}.gen-operator.dev`;
    const { finalizer = `${domain}/finalizer` } = spec.controller;
    const key = JSON.stringify([qualified, finalizer]);
    const others = known.get(key) ?? [];
    known.set(key, [...others, controller]);
    const other = others.find((each) => cleansUp(each) || cleansUp(controller));
    if (other === undefined) return [];
    const path = spec.controller.finalizer === undefined ? ["metadata", "name"] : ["spec", "controller", "finalizer"];
    const place = formatPosition(other.spec.document.valueAt(["metadata", "name"]).position);
    return [
      {
        ...SHARED_FINALIZER.violation,
        message: `controllers ${quote(spec.name)} and ${quote(other.spec.name)} (${place}) use the same finalizer ${quote(finalizer)}: the first to finish removes it before the other has cleaned up`,
        ...spec.document.valueAt(path),
        hint: `set spec.controller.finalizer, for example to ${domain}/${spec.name}`,
      },
    ];
  });
};

/** Returns whether the spec requires a cleanup before a primary of the controller is deleted. */
function cleansUp({ spec: { controller, dependents, removed } }: ResolvedController): boolean {
  if (controller.cleanupPolicy === "sweep") return false;
  const isHeld = [...dependents.values()].some(({ heldForCleanup }) => heldForCleanup === true);
  const isOrphaned = [...dependents.values()].some(
    ({ mode, deletion }) => mode !== "readOnly" && deletion === "orphan",
  );
  const isUntied = [...removed.values()].some(({ deletion }) => deletion === "orphan");
  return isHeld || isOrphaned || isUntied || [...dependents.values()].some(isDeletedByOperator);
}
