import type { CelValue } from "@bufbuild/cel";
import { spend, spendText } from "./budget.js";
import type { Library } from "./library.js";
import { createComparison } from "./equality.js";

/** Tells whether two values are equal in CEL; whoever asks pays for the comparison. */
export type Equals = (left: CelValue, right: CelValue) => boolean;

let loaded: Equals | undefined;

/** Returns the equality of CEL, which the evaluator has as an operator alone. */
export function equalityOf(library: Library): Equals {
  return (loaded ??= createEquality(library));
}

function createEquality(library: Library): Equals {
  const { celEnv, isCelList, isCelMap } = library;
  const operator = celEnv().funcs.find("_==_");
  const weigh = (value: CelValue): void => {
    if (typeof value === "string" || value instanceof Uint8Array) spendText(value);
    else if (isCelList(value) || isCelMap(value)) {
      spend(value.size);
      for (const each of value.values()) weigh(each);
    } else spend(1);
  };
  const differsInSize = (left: CelValue, right: CelValue) =>
    isCelList(left) && isCelList(right) && left.size !== right.size;
  const compare = createComparison(library, (left, right) => operator?.call(0, undefined, [left, right]) === true);
  return (left, right) => {
    if (differsInSize(left, right)) return false;
    weigh(left);
    return compare(left, right);
  };
}
