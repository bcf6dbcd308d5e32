import type ts from "typescript";

/** What a method of a list does with its elements. */
export interface ListMethod {
  /** What the parameters of the function that it is given are; empty if it is given none. */
  readonly parameters: readonly ("element" | "list" | "other")[];
  /** What it returns of the list, besides what the function returns. */
  readonly result: "element" | "list" | "flat" | "nothing";
  /** Whether it looks at the elements itself. */
  readonly looksAt?: boolean;
}

const TESTING: ListMethod["parameters"] = ["element", "other", "list"];
const COMPARING: ListMethod["parameters"] = ["element", "element"];

const METHODS: { readonly [name: string]: ListMethod } = {
  some: { parameters: TESTING, result: "nothing" },
  every: { parameters: TESTING, result: "nothing" },
  filter: { parameters: TESTING, result: "list" },
  find: { parameters: TESTING, result: "element" },
  findLast: { parameters: TESTING, result: "element" },
  findIndex: { parameters: TESTING, result: "nothing" },
  findLastIndex: { parameters: TESTING, result: "nothing" },
  forEach: { parameters: TESTING, result: "nothing" },
  map: { parameters: TESTING, result: "nothing" },
  flatMap: { parameters: TESTING, result: "nothing" },
  sort: { parameters: COMPARING, result: "list" },
  toSorted: { parameters: COMPARING, result: "list" },
  at: { parameters: [], result: "element" },
  pop: { parameters: [], result: "element" },
  shift: { parameters: [], result: "element" },
  slice: { parameters: [], result: "list" },
  concat: { parameters: [], result: "list" },
  reverse: { parameters: [], result: "list" },
  toReversed: { parameters: [], result: "list" },
  flat: { parameters: [], result: "flat" },
  includes: { parameters: [], result: "nothing", looksAt: true },
  indexOf: { parameters: [], result: "nothing", looksAt: true },
  join: { parameters: [], result: "nothing", looksAt: true },
};

/** Returns what a method of a list does; undefined if that is not known. */
export function listMethodOf(name: string, call: ts.CallExpression): ListMethod | undefined {
  if (name === "reduce" || name === "reduceRight") {
    // Without a value to start with, the first element is it.
    const startsWithElement = call.arguments.length < 2;
    return {
      parameters: [startsWithElement ? "element" : "other", "element", "other", "list"],
      result: startsWithElement ? "element" : "nothing",
    };
  }
  return Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
}
