// What a project that has changed is generated with, in the order of a run.
export { readProject } from "./input/read-project.js";
export { readSources } from "./input/read-sources.js";
export { readProjectMemory } from "./output/files/read-memory.js";
export { buildModel } from "./model/build/build-model.js";
export { emitInputs, emitProject } from "./output/emit-project.js";
export { moveCode } from "./move/move-code.js";
export { checkConditions } from "./output/conditions/check-conditions.js";
export { checkPromises } from "./output/promises/check-promises.js";
export { acceptWarnings } from "./model/build/accept-warnings.js";
export { writeFiles } from "./output/files/write-files.js";
export { readChanges } from "./output/files/file-changes.js";
export { checkMissingStubs } from "./output/stubs/missing-stubs.js";
export { wideSourceNotes } from "./output/reads/wide-sources.js";
