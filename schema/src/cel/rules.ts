// Evaluates the validation rules of a schema (`x-kubernetes-validations`) for an object, in the order and within the cost budget of the API server.
import { isDeepStrictEqual } from "node:util";
import {
  followRef,
  hasRules,
  memberSchema,
  type Definitions,
  type Schema,
  type ValidationRule,
} from "../values/schema.js";
import { isJsonObject } from "../json/json.js";
import { misfitText, ValueAdapter, type CelInput } from "./adapt-value.js";
import { OBJECT_LIMIT, RULE_LIMIT, TOO_COSTLY } from "./budget.js";
import { compileExpression, type Bindings } from "./compile.js";
import { optionalOf } from "./functions/optional.js";
import { loadLibrary } from "./library.js";
import { parseFieldPath, type Step } from "./fields.js";
import { join, type SchemaProblem } from "../values/check-value.js";

/** A validation rule that a value violates, or that cannot be evaluated. */
export interface RuleFailure {
  /** The path of the value, or of the field at the `fieldPath` of the rule if the rule is violated. */
  readonly steps: readonly Step[];
  readonly value: unknown;
  /** The type of the value according to the schema. */
  readonly type: string;
  readonly rule: ValidationRule;
  /**
   * `broken`: the rule is false, and `message` is its message. `error`: the evaluation failed. `limit`: the rule exceeds the cost limit of a single
   * rule. `budget`: the rules of the object exceed their total cost. No other rules are evaluated after the last two.
   */
  readonly kind: "broken" | "error" | "limit" | "budget";
  readonly message: string;
  /** Whether an update did not change the value and the rule does not refer to `oldSelf`. The API server then returns a warning (ratcheting). */
  readonly isForgiven: boolean;
}

/** An object to validate. `old` is the object that it replaces. */
export interface CheckedObject {
  readonly object: Record<string, unknown>;
  readonly old?: Record<string, unknown> | undefined;
  readonly schema: Schema;
  readonly definitions: Definitions;
}

/** Returns the violated rules of an object of a custom kind. Rules that cannot be evaluated are skipped. */
export function findFailures({ object, old, schema, definitions }: CheckedObject): readonly RuleFailure[] {
  if (!hasRules(schema, definitions)) return [];
  const walk = new RuleWalk(definitions);
  const twins: Twins = old === undefined ? {} : { current: { value: object, old } };
  walk.visit({ value: object, old }, schema, { node: schema, steps: [], isResource: true, twins });
  return walk.failures;
}

interface Pair {
  readonly value: unknown;
  readonly old: unknown;
}

/** The old values for ratcheting: the value's own, or that of the nearest ancestor that has one. */
interface Twins {
  readonly current?: Pair;
  readonly nearest?: Pair;
}

/** The location of a value. `node` is the structural schema of the value, which differs from the rules' schema in a branch of `allOf`. */
interface Place {
  readonly node: Schema;
  readonly steps: readonly Step[];
  readonly isResource?: boolean;
  readonly twins: Twins;
}

interface Selves {
  readonly self: CelInput;
  readonly oldSelf: CelInput | undefined;
}

class RuleWalk {
  readonly failures: RuleFailure[] = [];
  readonly #definitions: Definitions;
  readonly #adapter: ValueAdapter;
  #left = OBJECT_LIMIT;

  constructor(definitions: Definitions) {
    this.#definitions = definitions;
    this.#adapter = new ValueAdapter(definitions);
  }

  visit({ value, old }: Pair, given: Schema, place: Place): void {
    if (value === null || value === undefined || this.#left < 0) return;
    const [schema, node] = [followRef(given, this.#definitions), followRef(place.node, this.#definitions)];
    if (!hasRules(schema, this.#definitions)) return;
    const isWhole = place.isResource ?? node["x-kubernetes-embedded-resource"] === true;
    const here = { ...place, node, isResource: isWhole };
    this.#checkAll({ value, old }, schema["x-kubernetes-validations"] ?? [], here);
    for (const branch of schema.allOf ?? [])
      this.visit({ value, old }, branch, { ...here, twins: nearestOf(place.twins) });
    if (Array.isArray(value)) this.#visitItems({ value, old }, schema, here);
    else if (isJsonObject(value)) this.#visitMembers({ value, old }, schema, here);
  }

  #visitItems({ value, old }: Pair & { value: readonly unknown[] }, { items }: Schema, place: Place): void {
    if (items === undefined) return;
    const { node, steps, twins } = place;
    const twinOf = itemTwins(node, old);
    value.forEach((item, index) => {
      const twin = twinOf(item);
      this.visit({ value: item, old: twin }, items, {
        node: node.items ?? {},
        steps: [...steps, { kind: "index", index }],
        twins: below(twins, twin === undefined ? undefined : { value: item, old: twin }),
      });
    });
  }

  #visitMembers({ value, old }: Pair & { value: Record<string, unknown> }, schema: Schema, place: Place): void {
    const { node, steps, twins } = place;
    for (const [name, member] of Object.entries(value)) {
      const inner = memberSchema(schema, name);
      if (inner === undefined) continue;
      const twin = isJsonObject(old) && Object.hasOwn(old, name) ? old[name] : undefined;
      const isField = schema.properties !== undefined && Object.hasOwn(schema.properties, name);
      // The type cannot change on an update, so there is nothing to ratchet.
      const isTypeMeta = steps.length === 0 && (name === "apiVersion" || name === "kind");
      this.visit({ value: member, old: twin }, inner, {
        node: memberSchema(node, name) ?? {},
        steps: [...steps, { kind: isField ? "field" : "key", name }],
        twins: isTypeMeta ? {} : below(twins, twin === undefined ? undefined : { value: member, old: twin }),
      });
    }
  }

  #checkAll({ value, old }: Pair, rules: readonly ValidationRule[], place: Place): void {
    if (rules.length === 0) return;
    const misfit = misfitText(value, place.node);
    if (misfit !== undefined) return this.#failAll({ value, misfit }, rules, place);
    const self = this.#adapter.adapt(value, place.node, place.isResource);
    if (self === undefined) return;
    const oldSelf = this.#oldSelf(old, place);
    for (const rule of rules) if (this.#left >= 0) this.#check(rule, { self, oldSelf }, { ...place, value });
  }

  // A value that does not match the type of its schema is unchanged from the old object; otherwise schema validation would have rejected it before.
  #failAll(of: { value: unknown; misfit: string }, rules: readonly ValidationRule[], { steps, node }: Place): void {
    const { value, misfit: message } = of;
    const type = node.type ?? "";
    for (const rule of rules)
      this.failures.push({ steps, value, type, rule, isForgiven: false, kind: "error", message });
  }

  // An old value that does not match the type of its schema fails only rules that refer to it.
  #oldSelf(old: unknown, { node, isResource }: Place): CelInput | undefined {
    if (old === undefined || old === null) return undefined;
    const misfit = misfitText(old, node);
    return misfit === undefined
      ? this.#adapter.adapt(old, node, isResource)
      : (loadLibrary().celError(misfit) as unknown as CelInput);
  }

  #check(rule: ValidationRule, { self, oldSelf }: Selves, place: Place & { value: unknown }): void {
    const compilation = compileExpression(rule.rule);
    // The user has accepted that this rule is not evaluated.
    if ("problem" in compilation) return;
    const { usesOldSelf, evaluate } = compilation.expression;
    const isOptional = rule.optionalOldSelf === true;
    if (usesOldSelf && oldSelf === undefined && !isOptional) return;
    const bindings = !usesOldSelf
      ? { self }
      : { self, oldSelf: isOptional ? optionalOf(loadLibrary(), oldSelf) : oldSelf! };
    const outcome = evaluate(bindings, Math.min(this.#left, RULE_LIMIT));
    const limit = this.#left;
    this.#left = outcome.kind === "budget" ? -1 : this.#left - outcome.cost;
    if (outcome.kind === "value" && outcome.value === true) return;
    const { steps, value, node, twins } = place;
    const failure = { steps, value, type: node.type ?? "", rule, isForgiven: false };
    if (outcome.kind === "budget") {
      const kind = limit < RULE_LIMIT ? "budget" : "limit";
      this.failures.push({ ...failure, kind, message: TOO_COSTLY });
    } else if (outcome.kind === "error") this.failures.push({ ...failure, kind: "error", message: outcome.message });
    else {
      const { message, cost } = messageOf(rule, bindings, this.#left);
      this.#left -= cost;
      const isForgiven = !usesOldSelf && isUnchanged(twins);
      const field = [...steps, ...(parseFieldPath(rule.fieldPath?.trim() ?? "", node) ?? [])];
      this.failures.push({ ...failure, steps: field, kind: "broken", message, isForgiven });
    }
  }
}

function isUnchanged({ current, nearest }: Twins): boolean {
  const pair = current ?? nearest;
  return pair !== undefined && isDeepStrictEqual(pair.value, pair.old);
}

function nearestOf({ nearest }: Twins): Twins {
  return nearest === undefined ? {} : { nearest };
}

function below(twins: Twins, pair: Pair | undefined): Twins {
  const { current } = twins;
  if (current === undefined) return twins;
  return pair === undefined ? { nearest: current } : { current: pair, nearest: current };
}

// Only items of a `map` list are correlated with old items.
function itemTwins(node: Schema, old: unknown): (item: unknown) => unknown {
  const keys = node["x-kubernetes-list-map-keys"];
  if (node["x-kubernetes-list-type"] !== "map" || keys === undefined || !Array.isArray(old)) return () => undefined;
  const keyOf = (item: unknown) =>
    isJsonObject(item) ? JSON.stringify(keys.map((key) => item[key] ?? null)) : undefined;
  const known = new Map<string | undefined, unknown>(old.map((item: unknown) => [keyOf(item), item]));
  return (item) => (isJsonObject(item) ? known.get(keyOf(item)) : undefined);
}

// The maximum length of a message in bytes.
const LONGEST = 5120;

/**
 * Returns the message of a violated rule and the cost of its messageExpression. If that fails, or results in an empty, multiline, or overlong string,
 * the fixed message is used.
 */
function messageOf(
  { rule, message, messageExpression }: ValidationRule,
  bindings: Bindings,
  budget: number,
): { readonly message: string; readonly cost: number } {
  const fixed = message?.trim() || `failed rule: ${rule.trim()}`;
  const compilation = messageExpression === undefined ? undefined : compileExpression(messageExpression);
  if (compilation === undefined || "problem" in compilation || budget <= 0) return { message: fixed, cost: 0 };
  const outcome = compilation.expression.evaluate(bindings, Math.min(budget, RULE_LIMIT));
  const text = outcome.kind === "value" && typeof outcome.value === "string" ? outcome.value.trim() : "";
  const isGood = text !== "" && !text.includes("\n") && Buffer.byteLength(text) <= LONGEST;
  return { message: isGood ? text : fixed, cost: outcome.cost };
}

/** Validates an object of a custom kind against the rules of its schema, as the API server does on create. */
export function checkRules(
  object: Record<string, unknown>,
  schema: Schema,
  definitions: Definitions,
): readonly SchemaProblem[] {
  return findFailures({ object, schema, definitions }).map((failure) => {
    const { rule, kind, message } = failure;
    const place = pathOf(failure);
    const text = kind === "broken" ? message : `${message} evaluating rule: ${nameOf(rule)}`;
    return { path: place === "" ? "<root>" : place, message: text };
  });
}

function pathOf({ steps }: RuleFailure): string {
  return steps.reduce<string>((path, step) => {
    return step.kind === "index" ? `${path}[${step.index}]` : join(path, step.name);
  }, "");
}

function nameOf({ rule, message }: ValidationRule): string {
  return message?.trim() || rule.trim();
}
