import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { workflowErrors } from "../support/projects/github-workflow.js";
import { repositoryRoot } from "../support/repository.js";
import { assert, suite } from "../support/suite.js";

const template = () => readFile(join(repositoryRoot, "templates/project/ci.yaml"), "utf8");

suite("CI workflow of a new project", (test) => {
  test("is valid for GitHub's workflow parser", async () => {
    assert.equal(await workflowErrors(await template()), []);
  });

  for (const [mistake, from, to] of [
    ["an unknown field", "timeout-minutes:", "timeout-minute:"],
    ["an unknown permission", "contents: read", "contents: reed"],
    ["an unknown context", "github.ref", "git.ref"],
    ["a step that does nothing", "- run: npm ci", "- name: npm ci"],
  ] as const)
    test(`is invalid with ${mistake}`, async () => {
      const text = await template();
      assert.ok(text.includes(from));
      assert.is.not((await workflowErrors(text.replace(from, to))).length, 0);
    });

  test("has read-only permissions, keeps no credentials, and sets timeouts of at most 30 minutes", async () => {
    const { permissions, jobs } = parse(await template()) as {
      permissions: object;
      jobs: {
        [job: string]: { permissions?: object; "timeout-minutes": number; steps: { uses?: string; with?: object }[] };
      };
    };
    assert.equal(permissions, { contents: "read" });
    for (const job of Object.values(jobs)) {
      assert.is(job.permissions, undefined);
      assert.ok(job["timeout-minutes"] <= 30);
      const checkout = job.steps.find(({ uses }) => uses?.startsWith("actions/checkout@"));
      assert.equal(checkout?.with, { "persist-credentials": false });
    }
  });
});
