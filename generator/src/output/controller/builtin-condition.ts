import type { BuiltinModel, ResourceModel } from "../../model/project-model.js";
import type { ControllerNames } from "../controller-names.js";
import { callDoc, fieldsOf, valueDoc } from "../print/code.js";
import { layOut, type Doc } from "../print/layout.js";
import { builtinConditions } from "../runtime-symbols.js";
import { resourceDoc } from "./class-imports.js";

/** Prints a condition that the runtime ships: `ready`, `conditionIs({ type: "Ready" })`, `not(crdPresent(Route))`. */
export function builtinDoc(condition: BuiltinModel, names: ControllerNames): Doc {
  const { isNegated, of, name, arguments: args } = condition;
  const factory = builtinConditions[name];
  const own =
    of !== undefined
      ? callDoc(factory, [layOut(resourceDoc(of, names))])
      : args === undefined
        ? factory
        : call(factory, args);
  return isNegated === true ? callDoc("not", [layOut(own)]) : own;
}

/** Returns what the runtime exports for a condition. */
export function builtinValuesOf({ name, isNegated }: BuiltinModel) {
  return [builtinConditions[name], ...(isNegated === true ? (["not"] as const) : [])];
}

/** Returns the kind that a condition names. */
export function kindsIn({ of }: BuiltinModel): ResourceModel[] {
  return of === undefined ? [] : [of];
}

function call(factory: string, args: readonly unknown[]): Doc {
  const last = args.at(-1);
  const isObject = typeof last === "object" && last !== null && !Array.isArray(last);
  const texts = (isObject ? args.slice(0, -1) : args).map((each) => layOut(valueDoc(each)));
  return callDoc(factory, texts, isObject ? fieldsOf({ ...last }) : undefined);
}
