import { cp } from "node:fs/promises";
import { join } from "node:path";
import { chosenCompilers, writeProject, type ExtraOptions } from "../support/projects/compile.js";
import { listSamples } from "../support/projects/samples.js";
import { assert, suite } from "../support/suite.js";
import { createTemporaryFolder } from "../support/temporary-folder.js";

/**
 * What projects switch on or off beside `strict`; our own options are the first. `isolatedDeclarations` holds for the classes of kinds alone
 * (random-schemas.test.ts): the type of a workflow is what its builder infers.
 */
const FLAGS: { readonly [name: string]: ExtraOptions } = {
  "what new projects have": {},
  "all that is strict": {
    verbatimModuleSyntax: true,
    erasableSyntaxOnly: true,
    declaration: true,
    exactOptionalPropertyTypes: true,
    noImplicitReturns: true,
    noUnusedLocals: true,
    noUnusedParameters: true,
    noImplicitOverride: true,
    noUncheckedSideEffectImports: true,
    strictBuiltinIteratorReturn: true,
    module: "nodenext",
  },
  "strict alone": {
    exactOptionalPropertyTypes: false,
    noUncheckedIndexedAccess: false,
    verbatimModuleSyntax: false,
    isolatedModules: false,
    module: "nodenext",
  },
  "a bundler": { module: "esnext", moduleResolution: "bundler", isolatedModules: true, verbatimModuleSyntax: true },
};

/** What forbids most is tried everywhere. */
const STRICTEST = "all that is strict";

suite("code of the samples", (test) => {
  for (const [name, flags] of Object.entries(FLAGS))
    (name === STRICTEST ? test : test.thorough)(
      `compiles with ${name}`,
      async () => {
        await using folder = await createTemporaryFolder();
        for (const sample of listSamples())
          await cp(join(sample.folder, "src"), join(folder.path, sample.name, "src"), { recursive: true });
        await writeProject(folder.path, [], flags);
        for (const { compile } of chosenCompilers) assert.is(compile(folder.path), "");
      },
      { timeoutMs: 120_000 },
    );
});
