import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { repositoryRoot } from "../repository.js";
import { createTemporaryFolder } from "../temporary-folder.js";

type Parser = typeof import("@actions/workflow-parser");

/** Returns the errors that GitHub's own parser finds in a workflow: fields, types, and the contexts of expressions. */
export async function workflowErrors(content: string): Promise<string[]> {
  const { parseWorkflow, convertWorkflowTemplate, NoOperationTraceWriter } = await loadParser();
  const { context, value } = parseWorkflow({ name: "ci.yaml", content }, new NoOperationTraceWriter());
  const messages = () => context.errors.getErrors().map(({ message }) => message);
  if (value === undefined || messages().length > 0) return messages();
  await convertWorkflowTemplate(context, value);
  return messages();
}

// The package is written for bundlers: it imports JSON without import attributes.
async function loadParser(): Promise<Parser> {
  await using folder = await createTemporaryFolder();
  const { outputFiles } = await build({
    stdin: { contents: 'export * from "@actions/workflow-parser";', resolveDir: repositoryRoot },
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    banner: {
      js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
    },
  });
  const file = join(folder.path, "parser.mjs");
  await writeFile(file, outputFiles[0]!.contents);
  return (await import(pathToFileURL(file).href)) as Parser;
}
