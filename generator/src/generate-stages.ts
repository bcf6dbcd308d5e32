// The stages of a full generation, in the order of their execution.
export { readProject } from "./read/read-project.js";
export { readSources } from "./read/project-files.js";
export { checkForgotten, followRenames, forgetNames, readProjectMemory } from "./write/manifest.js";
export { rememberControllers, rememberDependents } from "./write/manifest.js";
export { buildModel } from "./check/build-model.js";
export { emitInputs, emitProject } from "./emit/emit-project.js";
export { checkConditions, checkPromises } from "./code/check-types.js";
export { acceptWarnings } from "./check/build-model.js";
export { writeFiles } from "./write/write-files.js";
export { readChanges } from "./write/write-files.js";
export { checkMissingStubs } from "./code/missing-stubs.js";
export { wideSourceNotes } from "./check/watches.js";
