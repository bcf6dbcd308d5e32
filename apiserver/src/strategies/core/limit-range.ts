import { parseQuantity } from "@gen-operator/schema";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import {
  type FieldError,
  duplicateError,
  forbiddenError,
  invalidError,
  requiredError,
} from "../../errors/field-error.js";
import { type JsonObject, memberOf, objectAt } from "../../json.js";
import { qualifiedNameProblems } from "../../validation/names.js";
import { containerResourceProblems, mayBeOvercommitted, resourceNameProblems } from "../pod-template/resources.js";
import { BILLION } from "../shared/resource-requests.js";
import type { Strategy } from "../strategy.js";

export const limitRangeStrategy: Strategy = {
  createsOnUpdate: true,
  checksMetadata: ["object"],
  structDefaults: { "core.v1.LimitRangeItem": defaultLimitRangeItem },
  validate: checkLimitRange,
};

const CLAIM = "PersistentVolumeClaim";
const TYPES = ["Pod", "Container", CLAIM];
type Amounts = Record<"min" | "max" | "default" | "defaultRequest" | "maxLimitRequestRatio", string | undefined>;

// Ordering constraints between two amounts, with the field and the message of the error.
const ORDER: [more: keyof Amounts, less: keyof Amounts, at: keyof Amounts, words: string][] = [
  ["min", "max", "min", "min value MORE is greater than max value LESS"],
  ["min", "defaultRequest", "defaultRequest", "min value MORE is greater than default request value LESS"],
  ["defaultRequest", "max", "defaultRequest", "default request value MORE is greater than max value LESS"],
  [
    "defaultRequest",
    "default",
    "defaultRequest",
    "default request value MORE is greater than default limit value LESS",
  ],
  ["min", "default", "default", "min value MORE is greater than default value LESS"],
  ["default", "max", "default", "default value MORE is greater than max value LESS"],
];

function checkLimitRange(range: JsonObject): FieldError[] {
  const types = new Set<string>();
  return objectsAt(range, "spec.limits").flatMap((limit, index) => {
    const path = `spec.limits[${index}]`;
    const type = textAt(limit, "type");
    const isTaken = types.has(type);
    types.add(type);
    const isPod = type === "Pod";
    const ofPods = isPod ? ["default", "defaultRequest"].filter((key) => hasAny(limit, key)) : [];
    const needsStorage = type === CLAIM && ["min", "max"].every((key) => amountAt(limit, key, "storage") === undefined);
    const detail = "either minimum or maximum storage value is required, but neither was provided";
    return [
      ...typeProblems(type).map((detail) => invalidError(`${path}.type`, type, detail)),
      ...(isTaken ? [duplicateError(`${path}.type`, type)] : []),
      ...["max", "min"].flatMap((key) => checkNames(`${path}.${key}`, limit, key)),
      ...ofPods.map((key) => forbiddenError(`${path}.${key}`, "may not be specified when `type` is 'Pod'")),
      ...(isPod ? [] : ["default", "defaultRequest"]).flatMap((key) => checkNames(`${path}.${key}`, limit, key)),
      ...(needsStorage ? [requiredError(`${path}.limits`, detail)] : []),
      ...checkNames(`${path}.maxLimitRequestRatio`, limit, "maxLimitRequestRatio"),
      ...resourcesIn(limit).flatMap((name) => checkAmounts(path, name, amountsOf(limit, name, isPod))),
    ];
  });
}

function typeProblems(type: string): string[] {
  const problems = qualifiedNameProblems(type);
  const isKnown = type.includes("/") || TYPES.includes(type);
  return problems.length > 0 || isKnown ? problems : ["must be a standard limit type or fully qualified"];
}

function checkNames(path: string, limit: JsonObject, key: string): FieldError[] {
  const type = textAt(limit, "type");
  const problems = type === "Pod" || type === "Container" ? containerResourceProblems : resourceNameProblems;
  return Object.keys(objectAt(limit, key) ?? {}).flatMap((name) =>
    problems(name).map((detail) => invalidError(`${path}[${name}]`, name, detail)),
  );
}

function checkAmounts(path: string, name: string, amounts: Amounts): FieldError[] {
  const ratio = amounts.maxLimitRequestRatio;
  const isLow = ratio !== undefined && (parseQuantity(ratio) ?? 0n) < BILLION;
  return [
    ...ORDER.flatMap(([more, less, at, words]) => {
      const [large, small] = [amounts[more], amounts[less]];
      if (large === undefined || small === undefined) return [];
      if ((parseQuantity(large) ?? 0n) <= (parseQuantity(small) ?? 0n)) return [];
      // For defaults, kube-apiserver prints the bound instead of the value.
      const shown = at !== "default" ? (amounts[at] ?? "") : more === "default" ? small : large;
      return [invalidError(`${path}.${at}[${name}]`, shown, words.replace("MORE", large).replace("LESS", small))];
    }),
    ...(isLow ? [invalidError(`${path}.maxLimitRequestRatio[${name}]`, ratio, `ratio ${ratio} is less than 1`)] : []),
    ...checkRatio(`${path}.maxLimitRequestRatio[${name}]`, amounts),
    ...checkEqualDefaults(path, name, amounts),
  ];
}

// Larger values overflow when Kubernetes converts them to milli-units.
const MAX_IN_THOUSANDTHS = (2n ** 63n - 1n) / 1000n;

function checkRatio(field: string, { min, max, maxLimitRequestRatio: ratio }: Amounts): FieldError[] {
  if (ratio === undefined || min === undefined || max === undefined) return [];
  const amounts = [ratio, min, max].map((amount) => parseQuantity(amount) ?? 0n);
  const isFine = amounts.every((amount) => roundedUp(amount, BILLION) < MAX_IN_THOUSANDTHS);
  const [most, least, limit] = amounts.map((amount) =>
    Number(roundedUp(amount, isFine ? BILLION / 1000n : BILLION)),
  ) as [number, number, number];
  const quotient = limit / least;
  if (!((isFine ? most / 1000 : most) > quotient)) return [];
  return [invalidError(field, ratio, `ratio ${ratio} is greater than max/min = ${quotient.toFixed(6)}`)];
}

function roundedUp(amount: bigint, unit: bigint): bigint {
  return amount / unit + (amount % unit > 0n ? 1n : 0n);
}

// Extended resources cannot be overcommitted, so limit and request must be equal.
function checkEqualDefaults(path: string, name: string, amounts: Amounts): FieldError[] {
  const [limit, request] = [amounts.default, amounts.defaultRequest];
  if (limit === undefined || request === undefined || parseQuantity(limit) === parseQuantity(request)) return [];
  const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${name}`;
  return mayBeOvercommitted(name) ? [] : [invalidError(`${path}.defaultRequest[${name}]`, request, detail)];
}

function amountsOf(limit: JsonObject, name: string, isPod: boolean): Amounts {
  return {
    min: amountAt(limit, "min", name),
    max: amountAt(limit, "max", name),
    default: isPod ? undefined : amountAt(limit, "default", name),
    defaultRequest: isPod ? undefined : amountAt(limit, "defaultRequest", name),
    maxLimitRequestRatio: amountAt(limit, "maxLimitRequestRatio", name),
  };
}

function resourcesIn(limit: JsonObject): string[] {
  const lists = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"];
  return [...new Set(lists.flatMap((key) => Object.keys(objectAt(limit, key) ?? {})))];
}

function hasAny(limit: JsonObject, key: string): boolean {
  return Object.keys(objectAt(limit, key) ?? {}).length > 0;
}

function amountAt(limit: JsonObject, key: string, name: string): string | undefined {
  const amount = memberOf(objectAt(limit, key), name);
  return amount === undefined ? undefined : String(amount);
}

/** Derives default limits and requests of containers from the bounds. */
function defaultLimitRangeItem(item: JsonObject): void {
  if (item["type"] !== "Container") return;
  const limits = { ...objectAt(item, "max"), ...objectAt(item, "default") };
  const requests = { ...objectAt(item, "min"), ...limits, ...objectAt(item, "defaultRequest") };
  if (Object.keys(limits).length > 0) item["default"] = limits;
  if (Object.keys(requests).length > 0) item["defaultRequest"] = requests;
}
