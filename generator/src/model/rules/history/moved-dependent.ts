import { didYouMean, formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import { presentNames } from "../../moved-names.js";
import { ruleOfController } from "../../build/resolved-project.js";
import { describePlace, isSamePlace, isSeenBy, placeOf, placeOfRemembered } from "./dependent-place.js";

/** Finds entries of `moved` that no object can follow. */
export const checkMovedDependent = ruleOfController((controller, { memory }) => {
  const { spec, dependents, removed } = controller;
  const present = presentNames(spec.moved);
  const names = dependents.map(({ name }) => name);
  return spec.moved.flatMap(({ from, to }, index): Diagnostic[] => {
    const path = ["spec", "moved", index];
    const fail = (field: "from" | "to", message: string, hint: object): Diagnostic[] => [
      { severity: "error", rule: "moved-dependent", message, ...spec.document.valueAt([...path, field]), ...hint },
    ];
    const placeOfEntry = (other: number) => formatPosition(spec.document.valueAt(["spec", "moved", other]).position);
    if (names.includes(from))
      return fail("from", `${quote(from)} is still a dependent of the workflow`, {
        hint: "remove it under dependents, or remove this entry if the name is used for something else now",
      });
    const last = present.get(from) ?? to;
    const dependent = dependents.find(({ name }) => name === last);
    const stated = removed.find(({ name }) => name === from);
    const [place, gone] = [dependent, stated].map((each) => each && placeOf(each));
    // An entry of removed may be about objects of another kind that had the name.
    if (stated !== undefined && (place === undefined || gone === undefined || isSamePlace(place, gone)))
      return fail("from", `${quote(from)} is listed under removed, too, and its objects cannot go and stay`, {
        hint: "remove one of the two entries",
      });
    const same = spec.moved.findIndex((each) => each.from === from);
    if (same < index)
      return fail("from", `${quote(from)} has moved already, at ${placeOfEntry(same)}`, {
        hint: "remove one of the two entries",
      });
    const rival = spec.moved.findIndex((each) => each.to === to);
    if (rival < index)
      return fail(
        "to",
        `${quote(spec.moved[rival]?.from ?? "")} moves to ${quote(to)} as well, at ${placeOfEntry(rival)}`,
        {
          hint: "two dependents cannot become one: keep one entry, and list the other dependent under removed",
        },
      );
    if (dependent === undefined) {
      // A chain that ends nowhere is reported once, at its end.
      if (last !== to && last !== from) return [];
      const message =
        last === from ? `${quote(from)} moves in a circle` : `${quote(to)} is not a dependent of the workflow`;
      return fail(
        "to",
        message,
        last === from ? {} : (didYouMean(to, names) ?? { hint: `the dependents are ${names.join(", ")}` }),
      );
    }
    const rememberedAs = (name: string) =>
      memory.dependents.find((each) => each.controller === spec.name && each.name === name);
    const known = rememberedAs(from);
    if (known !== undefined && memory.isUnfinished !== true && rememberedAs(last) !== undefined)
      return fail("to", `${quote(last)} was a dependent beside ${quote(from)}, and their objects cannot become one`, {
        hint: `list ${quote(from)} under removed`,
      });
    const [before, now] = [known && placeOfRemembered(known), placeOf(dependent)];
    if (before === undefined || now === undefined) return [];
    if (isSeenBy(now, before) && before.state === now.state) return [];
    return fail("to", `${quote(from)} was ${describePlace(before)}, and ${quote(last)} is ${describePlace(now)}`, {
      hint: `a name alone can move; list ${quote(from)} under removed`,
    });
  });
});
