// Loads @bufbuild/cel, which implements the standard semantics and interprets patterns as RE2. It takes 100 ms to load, so it is loaded lazily.
import { createRequire } from "node:module";
import type * as Cel from "@bufbuild/cel";
import type * as Extensions from "@bufbuild/cel/ext";
import type * as WellKnown from "@bufbuild/protobuf/wkt";
import type { create } from "@bufbuild/protobuf";

/** The evaluator with the extensions and protobuf types that our functions use. */
export type Library = typeof Cel &
  Pick<typeof Extensions, "strings"> &
  Pick<typeof WellKnown, "DurationSchema" | "TimestampSchema"> & { readonly create: typeof create };

let library: Library | undefined;

/** Returns the evaluator; loads it on the first call. */
export function loadLibrary(): Library {
  return (library ??= requireLibrary());
}

// Bundlers resolve only literal calls of `require`, which is undefined in an ES module of Node.js.
function requireLibrary(): Library {
  if (typeof require === "function")
    return {
      ...(require("@bufbuild/cel") as typeof Cel),
      ...(require("@bufbuild/cel/ext") as typeof Extensions),
      ...(require("@bufbuild/protobuf/wkt") as typeof WellKnown),
      ...(require("@bufbuild/protobuf") as { readonly create: typeof create }),
    };
  const load = createRequire(import.meta.url);
  return {
    ...(load("@bufbuild/cel") as typeof Cel),
    ...(load("@bufbuild/cel/ext") as typeof Extensions),
    ...(load("@bufbuild/protobuf/wkt") as typeof WellKnown),
    ...(load("@bufbuild/protobuf") as { readonly create: typeof create }),
  };
}
