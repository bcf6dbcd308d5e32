// The evaluator's own functions of texts, paid for by the lengths of what they read and make.
import type { CelFunc, CelList, CelValue } from "@bufbuild/cel";
import { spend, spendText } from "../budget.js";
import type { Library } from "../library.js";
import { typesOf, type FunctionsOf } from "../kubernetes-value.js";

/** The functions of the language and of its extension for texts that read or make texts. */
export const paidFunctions: FunctionsOf = (library) => {
  const { celEnv, celFunc, celMethod, strings } = library;
  const { STRING, INT, LIST } = typesOf(library);
  const isText = (type: CelFunc["result"]) => ["string", "bytes", "list"].includes(type.name);
  const found = [...celEnv().funcs, ...strings].filter(
    ({ target, arguments: types }) => types.some(isText) || (target !== undefined && isText(target)),
  );
  const call = (func: CelFunc, target: CelValue | undefined, args: readonly CelValue[]) => {
    pay(library, [...args, ...(target === undefined ? [] : [target])]);
    const result = func.call(0, target, [...args]);
    if (result === undefined || library.isCelError(result)) throw result ?? new Error(`no such overload: ${func.name}`);
    if (typeof result === "string") spendText(result);
    return result;
  };
  return [
    ...found.map((func): CelFunc => {
      const { name, target, arguments: types, result } = func;
      if (target === undefined) return celFunc(name, types, result, (...args) => call(func, undefined, args));
      return celMethod(name, target, types, result, function (...args) {
        return call(func, this, args);
      });
    }),
    celMethod("join", LIST, [], STRING, function () {
      return join(this, "");
    }),
    celMethod("join", LIST, [STRING], STRING, function (separator) {
      return join(this, separator);
    }),
    celMethod("split", STRING, [STRING, INT], LIST, function (separator, most) {
      return split(this, { separator, most: most < 0n ? Infinity : Number(most) });
    }),
    celMethod("replace", STRING, [STRING, STRING], STRING, function (part, by) {
      return replace(this, { part, by, most: Infinity });
    }),
    celMethod("replace", STRING, [STRING, STRING, INT], STRING, function (part, by, most) {
      return replace(this, { part, by, most: most < 0n ? Infinity : Number(most) });
    }),
  ];
};

function pay({ isCelList }: Library, values: readonly CelValue[]): void {
  for (const value of values)
    if (typeof value === "string" || value instanceof Uint8Array) spendText(value);
    else if (isCelList(value)) spend(value.size);
}

// What is made may be far longer than what is read, so it is paid for before it is made.
function join(list: CelList, separator: string): string {
  spend(list.size);
  const texts = [...list].map((item) => {
    if (typeof item !== "string") throw new Error("no such overload: join of what is no text");
    spendText(item);
    return item;
  });
  spendText({ length: texts.length * separator.length });
  return texts.join(separator);
}

// The last part has the rest.
function split(text: string, { separator, most }: { readonly separator: string; readonly most: number }): string[] {
  spendText(text);
  if (most === 0) return [];
  const parts = separator === "" ? [...text] : text.split(separator);
  if (parts.length <= most) return parts;
  return [...parts.slice(0, most - 1), parts.slice(most - 1).join(separator)];
}

interface Replacement {
  readonly part: string;
  readonly by: string;
  readonly most: number;
}

function replace(text: string, { part, by, most }: Replacement): string {
  spendText(text);
  const parts = text.split(part);
  const count = Math.min(most, parts.length - 1);
  spendText({ length: text.length + count * by.length });
  if (part === "") return replaceEmpty(text, by, most);
  return parts.map((each, index) => (index === 0 ? each : `${index <= count ? by : part}${each}`)).join("");
}

// As in Go: before every character, and at the end.
function replaceEmpty(text: string, by: string, most: number): string {
  const characters = [...text];
  const before = characters.map((character, index) => `${index < most ? by : ""}${character}`).join("");
  return before + (characters.length < most ? by : "");
}
