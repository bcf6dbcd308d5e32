// Generating
export { generate } from "./generate.js";
export type { GenerateOptions, GenerateResult } from "./generate.js";
export { generateTypes } from "./generate-types.js";
export type { GenerateTypesOptions } from "./generate-types.js";
export type { FileChange } from "./write/write-files.js";
export type { WriteReport } from "./write/write-files.js";

// Diagnostics
export { formatDiagnostic, hasErrors } from "./diagnostic.js";
export type { Diagnostic, SourcePosition } from "./diagnostic.js";
