import type { Schema, ValidationRule } from "../values/schema.js";
import { join, type SchemaProblem } from "../values/check-value.js";
import { followRef, isRecord, memberSchema, type Definitions } from "../values/fill-defaults.js";
import { ValueAdapter, type CelInput } from "./adapt-value.js";
import { OBJECT_LIMIT, RULE_LIMIT } from "./budget.js";
import { compileExpression } from "./compile-rule.js";
import { joinFieldPath } from "./field-path.js";
import { optionalOf } from "./functions/optional.js";
import { loadLibrary } from "./library.js";

/** Checks an object of a custom kind against the rules of its schema, as the API server does when the object is created. */
export function checkRules(
  object: Record<string, unknown>,
  schema: Schema,
  definitions: Definitions,
): readonly SchemaProblem[] {
  const check = new RuleCheck(definitions);
  check.visit(object, schema, { node: schema, path: "", isResource: true });
  return check.problems;
}

/** Where a value stands; `node` has its structure if the rules come from a branch of `allOf`. */
interface Place {
  readonly node: Schema;
  readonly path: string;
  readonly isResource?: boolean;
}

class RuleCheck {
  readonly problems: SchemaProblem[] = [];
  readonly #definitions: Definitions;
  readonly #adapter: ValueAdapter;
  #left = OBJECT_LIMIT;

  constructor(definitions: Definitions) {
    this.#definitions = definitions;
    this.#adapter = new ValueAdapter(definitions);
  }

  visit(value: unknown, given: Schema, { node: givenNode, path, isResource }: Place): void {
    if (value === null || value === undefined || this.#left < 0) return;
    const [schema, node] = [followRef(given, this.#definitions), followRef(givenNode, this.#definitions)];
    if (!hasRules(schema, this.#definitions)) return;
    const isWhole = isResource ?? node["x-kubernetes-embedded-resource"] === true;
    const rules = schema["x-kubernetes-validations"] ?? [];
    if (rules.length > 0) {
      const self = this.#adapter.adapt(value, node, isWhole);
      if (self !== undefined) for (const rule of rules) this.#check(rule, self, path);
    }
    for (const branch of schema.allOf ?? []) this.visit(value, branch, { node, path, isResource: isWhole });
    if (Array.isArray(value)) {
      const { items } = schema;
      if (items !== undefined)
        value.forEach((item, index) => this.visit(item, items, { node: node.items ?? {}, path: `${path}[${index}]` }));
    } else if (isRecord(value))
      for (const [name, member] of Object.entries(value)) {
        const inner = memberSchema(schema, name);
        if (inner !== undefined)
          this.visit(member, inner, { node: memberSchema(node, name) ?? {}, path: join(path, name) });
      }
  }

  #check(rule: ValidationRule, self: CelInput, path: string): void {
    const compilation = compileExpression(rule.rule);
    // The generator has said that this rule is not checked.
    if ("problem" in compilation) return;
    const { usesOldSelf, evaluate } = compilation.expression;
    if (usesOldSelf && rule.optionalOldSelf !== true) return;
    if (this.#left < 0) return;
    const bindings = usesOldSelf ? { self, oldSelf: optionalOf(loadLibrary(), undefined) } : { self };
    const outcome = evaluate(bindings, Math.min(this.#left, RULE_LIMIT));
    this.#left = outcome.kind === "budget" ? -1 : this.#left - outcome.cost;
    if (outcome.kind === "value" && outcome.value === true) return;
    const place = joinFieldPath(path, outcome.kind === "value" ? rule.fieldPath : undefined);
    const message =
      outcome.kind === "value" ? this.#messageOf(rule, self) : `${outcome.message} evaluating rule: ${nameOf(rule)}`;
    this.problems.push({ path: place === "" ? "<root>" : place, message });
  }

  #messageOf(rule: ValidationRule, self: CelInput): string {
    const compilation = rule.messageExpression === undefined ? undefined : compileExpression(rule.messageExpression);
    if (compilation !== undefined && "expression" in compilation && this.#left > 0) {
      const outcome = compilation.expression.evaluate({ self }, Math.min(this.#left, RULE_LIMIT));
      this.#left -= outcome.cost;
      const text = outcome.kind === "value" && typeof outcome.value === "string" ? outcome.value.trim() : "";
      if (text !== "" && !text.includes("\n")) return text;
    }
    return rule.message?.trim() || `failed rule: ${rule.rule.trim()}`;
  }
}

function nameOf({ rule, message }: ValidationRule): string {
  return message?.trim() || rule.trim();
}

const known = new WeakMap<Schema, boolean>();

// Most of a schema has no rule, and is passed over.
function hasRules(schema: Schema, definitions: Definitions): boolean {
  const found = known.get(schema);
  if (found !== undefined) return found;
  // A schema that refers to itself has no other rules there.
  known.set(schema, false);
  const { properties = {}, items, additionalProperties, allOf = [] } = schema;
  const inner = [...Object.values(properties), ...allOf, ...(items === undefined ? [] : [items])];
  if (typeof additionalProperties === "object") inner.push(additionalProperties);
  const has =
    (schema["x-kubernetes-validations"] ?? []).length > 0 ||
    inner.some((each) => hasRules(followRef(each, definitions), definitions));
  known.set(schema, has);
  return has;
}
