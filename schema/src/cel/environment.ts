import type { celEnv } from "@bufbuild/cel";
import { patternOrThrow } from "../strings/pattern.js";
import { spendMatch } from "./budget.js";
import { coreFunctions } from "./functions/core.js";
import { formatFunctions } from "./functions/formats.js";
import { listFunctions } from "./functions/lists.js";
import { macroFunctions } from "./functions/macros.js";
import { networkFunctions } from "./functions/network.js";
import { optionalFunctions } from "./functions/optional.js";
import { paidFunctions } from "./functions/strings.js";
import { quantityFunctions } from "./functions/quantities.js";
import { requestFunctions } from "./functions/requests.js";
import { semverFunctions } from "./functions/semver.js";
import { formatTextFunctions } from "./functions/format-text.js";
import { positionFunctions } from "./functions/positions.js";
import { textFunctions } from "./functions/texts.js";
import { urlFunctions } from "./functions/urls.js";
import { loadLibrary } from "./library.js";

let environment: ReturnType<typeof celEnv> | undefined;

/** Returns the functions that rules may call: those of CEL, of its extension for texts, and Kubernetes' own. */
export function loadEnvironment(): ReturnType<typeof celEnv> {
  return (environment ??= createEnvironment());
}

function createEnvironment(): ReturnType<typeof celEnv> {
  const library = loadLibrary();
  const own = [
    paidFunctions,
    coreFunctions,
    textFunctions,
    positionFunctions,
    formatTextFunctions,
    listFunctions,
    quantityFunctions,
    networkFunctions,
    urlFunctions,
    semverFunctions,
    formatFunctions,
    optionalFunctions,
    macroFunctions,
    requestFunctions,
  ];
  const funcs = own.flatMap((functionsOf) => functionsOf(library));
  return library.celEnv({ funcs, re2: { compile: patternOf } });
}

function patternOf(pattern: string) {
  return {
    test(text: string): boolean {
      spendMatch(text, pattern);
      return patternOrThrow(pattern).test(text);
    },
  };
}
