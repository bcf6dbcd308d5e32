import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { YamlPath } from "../../../input/yaml/yaml-document.js";
import type { Rule } from "../../build/resolved-project.js";

/** Reports finalizers without a domain: the API server refuses them for built-in kinds, and warns of them for custom resources. */
export const checkUnqualifiedFinalizer: Rule = ({ controllers }) =>
  controllers.flatMap(({ primary, spec }): Diagnostic[] => {
    const { finalizer, formerFinalizers = [] } = spec.controller;
    if (primary === undefined) return [];
    const former = formerFinalizers.map((name, index) => ({ name, path: ["formerFinalizers", index] as YamlPath }));
    const own = finalizer === undefined ? [] : [{ name: finalizer, path: ["finalizer"] as YamlPath }];
    // The name of a finalizer that another operator added cannot be changed.
    const checked = primary.isCustom ? own : [...own, ...former];
    return checked.flatMap(({ name, path }): Diagnostic[] => {
      if (name.includes("/")) return [];
      const problem = primary.isCustom
        ? "another operator may use and remove the same one"
        : `the API server rejects it on ${primary.plural}, a built-in kind`;
      return [
        {
          severity: primary.isCustom ? "warning" : "error",
          rule: "unqualified-finalizer",
          message: `finalizer ${quote(name)} has no domain: ${problem}`,
          ...spec.document.valueAt(["spec", "controller", ...path]),
          hint: "use a domain, a slash and a name, such as webpages.example.com/finalizer",
        },
      ];
    });
  });
