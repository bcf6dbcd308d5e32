// Every scenario of JOSDK's tests is accounted for, and what is named exists.
import { missingTests, parseJosdkTable, readJosdkTable } from "../../support/tables/josdk-table.js";
import { untestedRows } from "../../support/tables/named-tests.js";
import { assert, suite } from "../../support/suite.js";

/** The tables, with the first and the last of their numbers. */
const TABLES: Record<string, [first: number, last: number]> = {
  "Packages around the framework": [1, 7],
  "The framework": [8, 9],
  "The reconciler API (baseapi)": [10, 85],
  "Dependents (dependent)": [86, 123],
  "Workflows (workflow)": [124, 139],
  WorkflowReconcileExecutorTest: [1, 35],
  WorkflowCleanupExecutorTest: [1, 11],
  "Beside the executors": [1, 12],
  EventProcessorTest: [1, 34],
  ResourceStateManagerTest: [1, 8],
  ReconciliationDispatcherTest: [1, 28],
  TimerEventSourceTest: [1, 7],
  GenericRetryExecutionTest: [1, 9],
  LinearRateLimiterTest: [1, 5],
  TemporaryResourceCacheTest: [1, 18],
  EventFilterWindowTest: [1, 27],
  EventFilterSupportTest: [1, 13],
  InformerEventSourceTest: [1, 26],
  ControllerEventSourceTest: [1, 13],
  SSABasedGenericKubernetesResourceMatcherTest: [1, 36],
  PodTemplateSpecSanitizerTest: [1, 15],
  GenericKubernetesResourceMatcherTest: [1, 16],
  PrimaryToSecondaryIndexTest: [1, 8],
  MappersTest: [1, 4],
  ExternalResourceCachingEventSourceTest: [1, 10],
  PollingEventSourceTest: [1, 7],
  PerResourcePollingEventSourceTest: [1, 7],
  ResourceOperationsTest: [1, 4],
  "PatchMatchersTest and StatusMatchersTest": [1, 5],
  Others: [1, 4],
};

const WORDS = new Set(["later", "different", "elsewhere", "nothing to test"]);

suite("JOSDK test table", (test) => {
  const rows = readJosdkTable();

  test("lists every scenario exactly once", () => {
    const wanted = Object.entries(TABLES).flatMap(([heading, [first, last]]) =>
      Array.from({ length: last - first + 1 }, (_, index) => `${heading} ${first + index}`),
    );
    assert.equal(
      rows.map(({ id }) => id),
      wanted,
    );
  });

  test("names a test or a known reason for every scenario", () => {
    const silent = rows.filter(({ tests, remarks }) => tests.length + remarks.length === 0);
    assert.equal(
      silent.map(({ id, line }) => `${id} (line ${line})`),
      [],
    );
    const words = rows.flatMap(({ remarks }) => remarks.map(({ word }) => word));
    assert.equal(
      words.filter((word) => !WORDS.has(word)),
      [],
    );
  });

  test("names only existing tests, in suites that always run", () => {
    assert.equal(untestedRows(rows), []);
  });

  test("reports a named test that did not pass in a file that ran", () => {
    const where = "`unit/a.test` › one<br>`unit/b.test` › two<br>different: because";
    const [row] = parseJosdkTable(`### Table\n\n| 7 | something | ${where} |`, "JOSDK.md");
    assert.equal(row?.remarks, [{ word: "different", reason: "because" }]);
    assert.equal(missingTests([row!], new Map([["unit/a.test", ["one"]]])), []);
    assert.equal(missingTests([row!], new Map([["unit/b.test", ["one"]]])), [
      'JOSDK.md, Table 7: unit/b.test ran, but "two" did not pass in it',
    ]);
  });
});
