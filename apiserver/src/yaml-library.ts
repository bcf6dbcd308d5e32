// Loading the library takes longer than starting a server, and most servers never process YAML.
import { createRequire } from "node:module";
import type * as Yaml from "yaml";

const require = createRequire(import.meta.url);
let library: typeof Yaml | undefined;

/** Returns the YAML library, which is loaded on first use. */
export function yamlLibrary(): typeof Yaml {
  return (library ??= require("yaml") as typeof Yaml);
}
