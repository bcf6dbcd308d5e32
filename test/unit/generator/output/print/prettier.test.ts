import { format } from "prettier";
import { listSamples } from "../../../../support/projects/samples.js";
import { assert, suite } from "../../../../support/suite.js";

suite("generated code of samples", (test) => {
  for (const { name, generate } of listSamples())
    test(
      `is formatted as prettier does: ${name}`,
      async () => {
        const files = (await generate()).filter(({ owner, path }) => owner === "generator" && path.endsWith(".ts"));
        assert.ok(files.length > 0);
        for (const { path, content } of files)
          assert.is(await format(content, { parser: "typescript", printWidth: 120 }), content, path);
      },
      { timeoutMs: 60_000 },
    );
});
