import { formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import type { Place } from "../../../input/yaml/yaml-document.js";
import type { Rule } from "../../build/resolved-project.js";

/** Finds former names of controllers that are in use: two controllers would treat the same objects as their own. */
export const checkFormerName: Rule = ({ controllers }) => {
  const present = new Set(controllers.map(({ spec }) => spec.name));
  const claimed = new Map<string, { readonly controller: string; readonly place: Place }>();
  return controllers.flatMap(({ spec: { name, controller, document } }) =>
    (controller.formerNames ?? []).flatMap((former, index): Diagnostic[] => {
      const place = document.valueAt(["spec", "controller", "formerNames", index]);
      const fail = (message: string): Diagnostic[] => [
        { severity: "error", rule: "former-name", message, ...place, hint: `remove ${quote(former)} from formerNames` },
      ];
      if (former === name) return fail(`${quote(former)} is the present name of the controller`);
      if (present.has(former)) return fail(`${quote(former)} is the name of another controller`);
      const other = claimed.get(former);
      if (other === undefined) {
        claimed.set(former, { controller: name, place });
        return [];
      }
      const { position } = other.place;
      return fail(
        `${quote(former)} is also a former name of controller ${quote(other.controller)}, at ${formatPosition(position)}: ` +
          "its objects can only belong to one of them",
      );
    }),
  );
};
