import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import { type ParseExpression, constantValueOf } from "../model/expression.js";
import type { ConditionName, ExpressionName, RawSchema, ResourceModel } from "../model/project-model.js";
import {
  type Check,
  type LocatedCondition,
  type ResolvedController,
  type ResolvedDependent,
  type ResourceCatalog,
  checkOfController,
  conditionsOf,
  edgesOf,
  filtersOf,
  formatKind,
  parseKind,
  placeOfCondition,
  reachableFrom,
  requiredEdgesOf,
  subjectOf,
} from "../model/resolved-project.js";
import { fieldAt, isIntOrString } from "../model/schema.js";
import type { BuiltinConditionName, FieldEqualsSpec } from "../read/workflow-spec.js";
import type { Place, YamlDocument, YamlPath } from "../read/yaml/yaml-document.js";
import { BUILTIN_CONDITION, CONDITION_FIELD, CONSTANT_CONDITION, WHEN_NAME, WHEN_SYNTAX } from "./rules.js";

// `deleted` is also true before the object is created, so it only fits a deletePostcondition; a condition that reads the live object is never met
// before.
const USES: { readonly [K in BuiltinConditionName]: readonly ConditionName[] } = {
  ready: ["readyPostcondition"],
  bound: ["readyPostcondition"],
  deleted: ["deletePostcondition"],
  crdPresent: ["activationCondition", "reconcilePrecondition"],
  condition: ["readyPostcondition", "existing"],
  fieldEquals: ["readyPostcondition", "existing"],
};

/** Built-in conditions that apply only to Kubernetes objects. */
const OF_KUBERNETES: ReadonlySet<string> = new Set(["ready", "bound", "crdPresent", "condition"]);

/** Reports built-in conditions that do not fit their slot, or that cannot apply to an external dependent. */
export const checkBuiltinCondition = checkOfController((controller) =>
  controller.dependents.flatMap((dependent) =>
    conditionsOf(dependent).flatMap((located) => checkUse(located, { dependent, controller })),
  ),
);

interface Owner {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
}

function checkUse(located: LocatedCondition, { dependent, controller }: Owner): Diagnostic[] {
  const { name, condition } = located;
  if (condition.kind !== "builtin") return [];
  const builtin = condition.name;
  const uses = USES[builtin];
  const isExternal = dependent.spec.external !== undefined;
  const fail = (message: string, hint: string): Diagnostic[] => [
    {
      ...BUILTIN_CONDITION.violation,
      message,
      ...placeOfCondition(located, controller.spec.document),
      hint,
    },
  ];
  const isAboutOther = condition.name === "crdPresent" && condition.of !== undefined;
  if (isExternal && OF_KUBERNETES.has(builtin) && !isAboutOther)
    return fail(
      `condition ${quote(builtin)} reads a Kubernetes object, but dependent ${quote(dependent.name)} is external`,
      builtin === "crdPresent" ? "use crdPresent: { of: <kind> }, when: or function:" : "use when: or function:",
    );
  const { resource } = dependent;
  if (builtin === "bound" && resource !== undefined && !isVolume(resource))
    return fail(
      `condition "bound" applies only to PersistentVolumeClaims and PersistentVolumes, but dependent ${quote(dependent.name)} is a ${resource.kind}`,
      "use ready",
    );
  if (uses.includes(name)) return [];
  const suited = (Object.keys(USES) as BuiltinConditionName[]).filter((other) => USES[other].includes(name));
  return fail(
    `condition ${quote(builtin)} is not allowed as ${name}, only as ${uses.join(" or ")}`,
    `use one of ${[...suited, "when", "function"].join(", ")}`,
  );
}

function isVolume({ group, kind }: { readonly group: string; readonly kind: string }): boolean {
  return group === "" && (kind === "PersistentVolumeClaim" || kind === "PersistentVolume");
}

/** Reports `when:` expressions that do not parse as a single side-effect-free expression, or that use a name without a meaning in their slot. */
export function checkConditionExpression(parse: ParseExpression): Check {
  return checkOfController((controller) => [
    ...filtersOf(controller).flatMap(({ filter: { when }, path }) => {
      if (when === undefined) return [];
      const place = { path: [...path, "when"], document: controller.spec.document };
      const parsed = parse(when);
      return parsed.kind === "problem" ? [syntaxError(parsed, place)] : [];
    }),
    ...controller.dependents.flatMap((dependent) => checkReference(dependent, controller, parse)),
    ...controller.dependents.flatMap((dependent) =>
      conditionsOf(dependent).flatMap(({ name, condition, path }): Diagnostic[] => {
        if (condition.kind !== "when") return [];
        const place = { path, document: controller.spec.document };
        const parsed = parse(condition.expression);
        if (parsed.kind === "problem") return [syntaxError(parsed, place)];
        return parsed.offsets.flatMap(([used, offset]) => {
          const said = misuseOf(used, name, dependent);
          return said === undefined ? [] : [expressionDiagnostic({ ...WHEN_NAME.violation, ...said }, offset, place)];
        });
      }),
    ),
  ]);
}

function checkReference(
  { name, spec: { again, ref }, path }: ResolvedDependent,
  { spec: { document } }: ResolvedController,
  parse: ParseExpression,
): Diagnostic[] {
  const stated = { name: ref?.name, namespace: ref?.namespace, again };
  return Object.entries(stated).flatMap(([part, text]) => {
    if (text === undefined) return [];
    const place = { path: [...path, ...(part === "again" ? [] : ["ref"]), part], document };
    const parsed = parse(text);
    if (parsed.kind === "problem") return [syntaxError(parsed, place)];
    return [...parsed.offsets].flatMap(([used, offset]) => {
      if (used === "primary") return [];
      const message = `${part === "again" ? "again" : "ref"} of dependent ${quote(name)} can use only primary, not ${used}`;
      const hint =
        part === "again"
          ? "use a field of the primary that users change to run the dependent again"
          : "use fields of the primary: the index that maps the object to its primaries is computed from them alone";
      return [expressionDiagnostic({ ...WHEN_NAME.violation, message, hint }, offset, place)];
    });
  });
}

interface ExpressionPlace {
  readonly path: YamlPath;
  readonly document: YamlDocument;
}

function syntaxError({ message, offset }: { message: string; offset: number }, place: ExpressionPlace): Diagnostic {
  return expressionDiagnostic({ ...WHEN_SYNTAX.violation, message }, offset, place);
}

function expressionDiagnostic(
  said: Pick<Diagnostic, "severity" | "rule" | "message" | "hint">,
  offset: number,
  { path, document }: ExpressionPlace,
): Diagnostic {
  const position = document.characterAt(path, offset);
  return { ...said, ...document.valueAt(path), position };
}

/** Returns why a name has no meaning in a condition; undefined if it has one. */
function misuseOf(used: ExpressionName, condition: ConditionName, { name, spec }: ResolvedDependent) {
  if (used !== "live" && used !== "item") return undefined;
  const isOfItem = ["readyPostcondition", "deletePostcondition", "existing"].includes(condition);
  if (spec.bulk === undefined && used === "item")
    return {
      message: `dependent ${quote(name)} is not a bulk dependent, so it has no items`,
      hint: "remove item from the expression, or set bulk: true",
    };
  if (spec.bulk !== undefined && !isOfItem)
    return {
      message: `the ${condition} of a bulk dependent is evaluated once for all items, so it cannot use ${used}`,
      hint: `use secondary.${name}, a record of the live items by their keys`,
    };
  if (condition === "activationCondition")
    return {
      message: `dependent ${quote(name)} is not watched until its activationCondition is true, so the condition cannot use live`,
      hint: "use a reconcilePrecondition, which can use live",
    };
  return undefined;
}

/** Reports built-in conditions about fields that are not in the schema of the kind, or about values that the field cannot have. */
export const checkConditionField = checkOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    const { resource } = dependent;
    // The schema of an external resource is not available here.
    if (resource === undefined) return [];
    return conditionsOf(dependent).flatMap((located) => {
      const { condition, path } = located;
      if (condition.kind !== "builtin") return [];
      if (condition.name === "condition") return checkConditions(located, { resource, controller });
      return condition.name === "fieldEquals" ? checkField(condition.field, path, { resource, controller }) : [];
    });
  }),
);

type Said = Pick<Diagnostic, "message" | "hint">;

interface Subject {
  readonly resource: ResourceModel;
  readonly controller: ResolvedController;
}

function checkConditions(located: LocatedCondition, { resource, controller }: Subject): Diagnostic[] {
  const { kind } = fieldAt(resource, ["status", "conditions"]);
  if (kind === "list" || kind === "any") return [];
  const message = `${resource.kind} has no status.conditions`;
  const hint = "use fieldEquals:, when: or function: instead";
  return [fieldDiagnostic({ message, hint }, placeOfCondition(located, controller.spec.document))];
}

function checkField(field: FieldEqualsSpec, path: YamlPath, { resource, controller }: Subject): Diagnostic[] {
  const { path: text } = field;
  const { document } = controller.spec;
  const fail = (said: Said, name: keyof FieldEqualsSpec) => fieldDiagnostic(said, document.valueAt([...path, name]));
  const found = fieldAt(resource, text.split("."));
  if (found.kind === "unknown") {
    const before = text.split(".").slice(0, found.depth);
    const candidates = found.known.map((name) => [...before, name].join("."));
    const message =
      found.reason === "whole"
        ? `field ${quote(before.join("."))} of ${resource.kind} has no fields in its schema`
        : `${resource.kind} has no field ${quote(text)}`;
    const listed = candidates.length > 0 ? `known fields: ${candidates.join(", ")}` : "use when: or function: instead";
    const hint = didYouMean(text, candidates)?.hint ?? listed;
    return [fail({ message, hint }, "path")];
  }
  if (found.kind === "object" || found.kind === "list" || found.kind === "map") {
    const isMetadata = text.startsWith("metadata.");
    if (isMetadata) return [];
    const message = `field ${quote(text)} is ${found.kind === "object" ? "an object" : `a ${found.kind}`}, but fieldEquals compares a single value`;
    const hint = "use a field inside it, or when: or function:";
    return [fail({ message, hint }, "path")];
  }
  return checkValue(field, found.schema ?? {}, resource.kind).map((said) => fail(said, "value"));
}

function checkValue({ path, value }: FieldEqualsSpec, schema: RawSchema, kind: string): Said[] {
  const problem = `invalid value ${describe(value)}: ${path} of ${kind} must be`;
  const allowed = schema["enum"];
  if (Array.isArray(allowed) && !allowed.includes(value)) {
    const texts = allowed.map(String);
    return [{ message: `${problem} one of ${texts.join(", ")}`, ...didYouMean(String(value), texts) }];
  }
  const type = schema["type"];
  const expected = isIntOrString(schema) ? undefined : type === "integer" ? "number" : type;
  if (typeof expected !== "string" || typeof value === expected) return [];
  return [{ message: `${problem} of type ${String(type)}` }];
}

function describe(value: unknown): string {
  return typeof value === "string" ? quote(value) : String(value);
}

function fieldDiagnostic({ message, hint }: Said, place: Place): Diagnostic {
  return { ...CONDITION_FIELD.violation, message, ...place, ...(hint === undefined ? {} : { hint }) };
}

/** Describes the consequence of a condition that is never met. */
export const NEVER: { readonly [K in ConditionName]: (name: string) => string } = {
  activationCondition: (name) => `dependent ${name} is always inactive`,
  reconcilePrecondition: (name) => `dependent ${name} is never created`,
  readyPostcondition: (name) => `dependents that depend on ${name} are never created`,
  existing: (name) => `dependent ${name} never adopts an object`,
  deletePostcondition: (name) => `neither the dependencies of ${name} nor the primary are ever deleted`,
};

/** The hint of warnings about constant conditions. */
export const CONSTANT_HINT = "correct or remove the condition, or accept the warning and give a reason";

/** Warns about constant conditions: dependents that can never become active, and conditions without effect. */
export function checkConstantCondition(decide: Decide): Check {
  return checkOfController((controller, { catalog }) =>
    controller.dependents.flatMap((dependent) =>
      conditionsOf(dependent).flatMap((located): Diagnostic[] => {
        const { document } = controller.spec;
        const problem = problemOf(located, { dependent, controller, catalog, decide });
        if (problem === undefined) return [];
        return [
          {
            ...CONSTANT_CONDITION.violation,
            ...problem,
            about: subjectOf(controller, dependent),
            ...(located.condition.kind === "when"
              ? document.valueAt(located.path)
              : placeOfCondition(located, document)),
          },
        ];
      }),
    ),
  );
}

/** Evaluates an expression statically. `absent` lists the texts in it that refer to objects that do not exist. Default: none */
export type Decide = (when: string, absent?: ReadonlySet<string>) => Decision;

/** Result of the static evaluation: constantly true, constantly false, or dependent on the input. */
type Decision = "holds" | "fails" | "depends";

/** Implements {@link Decide}. */
export function decideExpression(when: string, absent: ReadonlySet<string> = new Set()): Decision {
  const constant = constantValueOf(when, absent);
  return constant === undefined ? "depends" : constant.value ? "holds" : "fails";
}

interface Around {
  readonly dependent: ResolvedDependent;
  readonly controller: ResolvedController;
  readonly catalog: ResourceCatalog;
  readonly decide: Decide;
}

function problemOf(
  { name: kind, condition }: LocatedCondition,
  { dependent, controller, catalog, decide }: Around,
): Said | undefined {
  const { name, resource } = dependent;
  const said = (message: string, hint = CONSTANT_HINT): Said => ({ message, hint });
  if (condition.kind === "when") {
    const { expression: when } = condition;
    const always = decide(when);
    if (always === "holds" && kind === "existing")
      return said("the condition of existing is always true", "set existing: adopt");
    if (always === "holds") return said(`the ${kind} is always true, so it has no effect`);
    if (always === "fails" && kind === "existing")
      return said("the condition of existing is always false", "set existing: refuse");
    if (always === "fails") return said(`the ${kind} is never true, so ${NEVER[kind](quote(name))}`);
    const later = laterThan(dependent, controller, kind);
    const isStuck = later.size > 0 && decide(when, withoutTexts(later, name)) === "fails";
    return isStuck
      ? said(`${describeLater(when, name, { later, decide })}, so ${NEVER[kind](quote(name))}`)
      : undefined;
  }
  if (condition.name !== "crdPresent" || condition.kind !== "builtin") return undefined;
  const { of, isNegated } = condition;
  const asked = of === undefined ? resource : typeof of === "string" ? catalog.find(parseKind(of)) : undefined;
  if (asked === undefined || asked.isCustom) return undefined;
  return said(
    `${isNegated ? "not: crdPresent is never" : "crdPresent is always"} true: ${formatKind(asked)} is built into Kubernetes 1.36 and needs no CRD`,
  );
}

/** Returns the dependents that are created only after a condition of the given dependent is met: the dependent itself, and those that wait for it. */
function laterThan(
  { name }: ResolvedDependent,
  { dependents }: ResolvedController,
  kind: ConditionName,
): ReadonlySet<string> {
  // The object may exist regardless of what the operator has created.
  if (kind === "deletePostcondition" || kind === "existing") return new Set();
  // An optional dependency does not wait while this dependent is inactive, so only required edges count.
  const edges = kind === "readyPostcondition" ? edgesOf(dependents) : requiredEdgesOf(dependents);
  const isLater = (other: string) =>
    other === name ? kind !== "readyPostcondition" : reachableFrom(edges, other).has(name);
  return new Set(dependents.filter((each) => isMadeHere(each) && isLater(each.name)).map((each) => each.name));
}

// An object of another client may exist earlier, and the value of a bulk dependent is always a record.
function isMadeHere({ spec: { external, mode, existing, bulk } }: ResolvedDependent): boolean {
  return external === undefined && mode !== "readOnly" && (existing ?? "refuse") === "refuse" && bulk === undefined;
}

function describeLater(
  when: string,
  name: string,
  { later, decide }: Pick<Around, "decide"> & { readonly later: ReadonlySet<string> },
): string {
  const needed = [...later].find((each) => decide(when, withoutTexts(new Set([each]), name)) === "fails");
  if (needed === name) return `the condition is false until ${quote(name)} exists`;
  const waiting = needed === undefined ? "dependents exist that wait" : `${quote(needed)} exists, which waits`;
  return `the condition is false until ${waiting} for ${quote(name)}`;
}

/** Returns the expression texts that refer to absent dependents, in a condition of dependent `name`. */
function withoutTexts(absent: ReadonlySet<string>, name: string): ReadonlySet<string> {
  return new Set([...absent].flatMap((each) => [`secondary.${each}`, ...(each === name ? ["live"] : [])]));
}
