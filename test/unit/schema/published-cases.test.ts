// The published cases of Kubernetes' own CEL libraries, as data: each is evaluated, or names why not.
import { RequestExpressions } from "@gen-operator/schema/cel";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";

interface PublishedCase {
  readonly file: string;
  readonly name: string;
  readonly expression: string;
  readonly value?: boolean | number | string;
  /** Whether the evaluation fails. */
  readonly fails?: boolean;
  /** Why the case is not tried. */
  readonly lacks?: string;
}

const requested = { group: "", resource: "", subresource: "", namespace: "", name: "" };

suite("CEL library case of Kubernetes", (test) => {
  test("evaluates as in kube-apiserver", async () => {
    const text = await readFile(join(repositoryRoot, "fixtures/cel/published-cases.json"), "utf8");
    const cases = JSON.parse(text) as PublishedCase[];
    const tried = cases.filter(({ lacks }) => lacks === undefined);
    const wrong = tried.flatMap(({ file, name, expression, value, fails }) => {
      const authorize = () => ({ allowed: false, reason: "" });
      const result = new RequestExpressions({ values: {}, requested, authorize }, 10_000_000).evaluate(expression);
      if ("error" in result) return fails === true ? [] : [`${file} ${name}: ${result.error}`];
      const found = typeof result.value === "bigint" ? Number(result.value) : result.value;
      return found === value ? [] : [`${file} ${name}: ${expression} is ${String(found)}`];
    });
    assert.equal(wrong, []);
    assert.ok(tried.length > cases.length * 0.85, "most cases are tried");
  });
});
