// What the rules of a definition may cost, estimated from the sizes that its schema bounds, in the words of kube-apiserver 1.36.
import type { Schema } from "../values/schema.js";
import { estimateCost, LARGEST_REQUEST, sizedTypeOf, type CheckedExpression } from "../cel/index.js";
import { forbiddenError, type FieldError } from "./field-error.js";
import { memberOf, type JsonObject } from "../json/json.js";

const EXPRESSION_LIMIT = 10_000_000;
const TOTAL_LIMIT = 100_000_000;
const MOST_NAMED = 4;
const UNBOUNDED = 2 ** 64;
const ADVICE =
  "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";

/** The value that a rule is about. */
interface Asked {
  readonly node: JsonObject;
  readonly isRoot: boolean;
  readonly copies: number | undefined;
}

/** Estimates the rules of one schema, and adds up what they cost. */
export class RuleCosts {
  #total = 0;
  readonly #expensive: { readonly path: string; readonly cost: number }[] = [];

  /** Refuses a rule that can cost too much, as often as one object can have its value. */
  checkRule(path: string, rule: CheckedExpression, asked: Asked): FieldError[] {
    const { cost, copies } = costOf(rule, asked);
    return this.#observe(path, "estimated rule cost", copies === 0 ? 0 : Math.min(cost * copies, UNBOUNDED));
  }

  /** Refuses a messageExpression that can cost too much. */
  checkMessage(path: string, message: CheckedExpression, asked: Asked): FieldError[] {
    return this.#observe(path, "estimated messageExpression cost", costOf(message, asked).cost);
  }

  /** Refuses rules that can cost too much together, and names the most expensive ones. */
  check(path: string): FieldError[] {
    if (this.#total <= TOTAL_LIMIT) return [];
    const words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    const total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    const named = [...this.#expensive].sort((one, other) => other.cost - one.cost).slice(0, MOST_NAMED);
    return [
      ...named.map((each) => forbiddenError(each.path, words)),
      forbiddenError(path, exceeded(total, this.#total, TOTAL_LIMIT)),
    ];
  }

  #observe(path: string, name: string, cost: number): FieldError[] {
    this.#total = Math.min(this.#total + cost, UNBOUNDED);
    if (cost >= TOTAL_LIMIT / 100) this.#expensive.push({ path, cost });
    return cost > EXPRESSION_LIMIT ? [forbiddenError(path, exceeded(name, cost, EXPRESSION_LIMIT))] : [];
  }
}

/** Returns how many values one object can have of the schemas right below a schema; undefined if nothing bounds them. */
export function copiesBelow(schema: JsonObject, copies: number | undefined): number | undefined {
  const isMap = schema["type"] === "object" && memberOf(schema, "additionalProperties") !== undefined;
  const most = isMap ? schema["maxProperties"] : schema["type"] === "array" ? schema["maxItems"] : 1;
  return copies === undefined || typeof most !== "number" ? undefined : Math.min(copies * Math.max(0, most), UNBOUNDED);
}

function costOf(checked: CheckedExpression, { node, isRoot, copies }: Asked): { cost: number; copies: number } {
  const sized = sizedTypeOf(node as Schema, {}, isRoot || node["x-kubernetes-embedded-resource"] === true);
  if (sized === undefined) return { cost: 0, copies: 0 };
  const cost = estimateCost(checked, sized);
  return { cost, copies: copies ?? Math.floor(LARGEST_REQUEST / (sized.minBytes + 1)) };
}

function exceeded(name: string, cost: number, limit: number): string {
  const factor = cost / limit;
  const shown = factor > 100 ? "more than 100x" : factor < 1.5 ? `${factor.toFixed(6)}x` : `${factor.toFixed(1)}x`;
  return `${name} exceeds budget by factor of ${shown} ${ADVICE}`;
}
