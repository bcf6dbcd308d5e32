// Objects that a real API server accepts compile and parse; objects with one thing wrong, which it refuses, do neither.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "../../support/fast-check.js";
import { waitFor } from "#apiserver/wait-for.js";
import type { ResourceModel } from "#generator/model/project-model.js";
import { emitResources } from "#generator/emit/emit-project.js";
import { normaliseSchema } from "#generator/emit/resource/shape.js";
import { modulePathOf } from "#generator/emit/names.js";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import { parseResource } from "@gen-operator/runtime/cel";
import { defineResource, type ResourceDefinition } from "@gen-operator/runtime/codegen";
import { apiRequest, createAgent } from "../../support/api/api-request.js";
import { checkFiles, strictOptions, writeProject } from "../../support/projects/compile.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { hasCorpus, listCorpusProjects, readCorpusProject } from "../../support/kinds/corpus.js";
import { mutantsOf } from "../../support/kinds/mutants.js";
import { repositoryRoot } from "../../support/repository.js";
import { resourcesOfCrds } from "../../support/runtime/resource-models.js";
import { valueOf, type RandomSchema } from "../../support/kinds/structural-schemas.js";
import { seed } from "../../support/runs.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const CRDS = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TRIED = 30;
const MOST_VALID = 3;

/** Metadata as an object has it that is read. */
const WHOLE_METADATA = {
  labels: { app: "web" },
  annotations: { "example.com/note": "x" },
  finalizers: ["example.com/cleanup"],
  uid: "6d3f5c5e-0000-4000-8000-000000000000",
  creationTimestamp: "2024-01-01T00:00:00Z",
  ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: "1", controller: true }],
  managedFields: [
    {
      manager: "kubectl",
      operation: "Update",
      apiVersion: "v1",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:metadata": {} },
    },
  ],
};

interface Case {
  readonly resource: ResourceModel;
  readonly object: object;
  /** What is wrong with the object, and where. */
  readonly problem?: string;
}

/** The kinds of the samples and, where there is a collection of other projects' CRDs, of those. */
function resources(): ResourceModel[] {
  const files = readdirSync(join(repositoryRoot, "fixtures"), { recursive: true, encoding: "utf8" });
  const own = files
    .filter((file) => /^(samples\/[^/]+\/crds|crds)\/[^/]+\.yaml$/.test(file))
    .flatMap((file) => resourcesOfCrds(readFileSync(join(repositoryRoot, "fixtures", file), "utf8")));
  const others = hasCorpus ? listCorpusProjects().flatMap(readCorpusProject) : [];
  const served = [...own, ...others].filter(({ isServed, schema }) => isServed && schema["properties"] !== undefined);
  return [...new Map(served.map((each) => [`${each.plural}.${each.group}/${each.version}`, each])).values()];
}

function definitionOf(resource: ResourceModel): ResourceDefinition {
  return defineResource({ ...resource, schema: buildRuntimeSchema(resource) });
}

function doesParse({ resource, object }: Case): boolean {
  try {
    parseResource(definitionOf(resource), object);
    return true;
  } catch {
    return false;
  }
}

async function compiling(cases: readonly Case[]): Promise<readonly boolean[]> {
  await using folder = await createTemporaryFolder();
  const all = [...new Set(cases.map(({ resource }) => resource))];
  const files = cases.map(({ resource, object }, index) => {
    const { className } = normaliseSchema(resource);
    const declared = `import type { ${className}Input } from "./src/generated/${modulePathOf(resource)}.js";`;
    return {
      path: `case-${index}.ts`,
      content: `${declared}\nexport const object: ${className}Input = ${JSON.stringify(object)};\n`,
    };
  });
  await writeProject(folder.path, [...(await emitResources(all)), ...files]);
  const paths = files.map(({ path }) => join(folder.path, path));
  const problems = checkFiles(paths, strictOptions());
  return paths.map((path) => !problems.has(path));
}

suite("generated types and parse", (test) => {
  test(
    "accept and reject the same objects as kube-apiserver",
    async () => {
      await using server = await borrowControlPlane();
      const agent = createAgent(server);
      const cases: Case[] = [];
      const kinds = resources();
      for (const crd of new Map(kinds.map(({ plural, group, crd }) => [`${plural}.${group}`, crd])).values())
        await apiRequest(server, CRDS, { body: { ...(crd as object), status: undefined }, agent });
      for (const resource of kinds) {
        const { apiVersion, kind, plural, scope, schema } = definitionOf(resource);
        const place = scope === "Namespaced" ? "namespaces/default/" : "";
        const path = `POST /apis/${apiVersion}/${place}${plural}?dryRun=All&fieldValidation=Strict`;
        const ask = async (object: object) => (await apiRequest(server, path, { body: object, agent })).status;
        const metadata = { name: "x", ...(scope === "Namespaced" ? { namespace: "default" } : {}) };
        if (
          !(await waitFor(
            "the kind is served",
            async () => (await ask({ apiVersion, kind, metadata })) !== 404 || "no",
          ).catch(() => undefined))
        )
          continue;
        const own = resource.schema["properties"] as { readonly [name: string]: RandomSchema };
        const { apiVersion: _1, kind: _2, metadata: _3, status: _4, ...properties } = own;
        const fields = valueOf({ ...resource.schema, properties } as RandomSchema);
        let found = 0;
        for (const random of fc.sample(fields, { numRuns: TRIED, seed })) {
          if (found === MOST_VALID) break;
          const object = { ...(random as { readonly spec?: unknown }), apiVersion, kind, metadata };
          if ((await ask(object)) !== 201) continue;
          found += 1;
          cases.push({ resource, object });
          const whole = { ...object, metadata: { ...metadata, ...WHOLE_METADATA } };
          if (found === 1 && (await ask(whole)) === 201) cases.push({ resource, object: whole });
          for (const { problem, path: at, object: mutant } of mutantsOf(object, schema))
            if ((await ask(mutant)) >= 400) cases.push({ resource, object: mutant, problem: `${problem} ${at}` });
        }
      }
      agent.destroy();
      const compile = await compiling(cases);
      const wrong = cases.flatMap((each, index) => {
        const isValid = each.problem === undefined;
        const found = { compiles: compile[index], parses: doesParse(each) };
        if (found.compiles === isValid && found.parses === isValid) return [];
        return `${each.resource.kind} ${each.problem ?? "valid"} ${JSON.stringify(found)} ${JSON.stringify(each.object)}`;
      });
      const valid = cases.filter(({ problem }) => problem === undefined).length;
      process.stdout.write(`${kinds.length} kinds, ${valid} valid objects, ${cases.length - valid} mutants\n`);
      assert.is(wrong.join("\n"), "");
      assert.ok(cases.filter(({ object }) => JSON.stringify(object).includes("ownerReferences")).length > 5);
      assert.ok(valid > 10 && cases.length > 2 * valid);
    },
    { timeoutMs: 600_000 },
  );
});
