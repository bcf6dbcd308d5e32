import type {
  ConditionModel,
  ControllerModel,
  DependentModel,
  Diagnostic,
  ProjectModel,
  SourcePosition,
} from "../model/project-model.js";
import { controllerNamesOf, dependentNamesOf } from "./controller-names.js";
import type { OutputFile } from "./output-file.js";
import { nameResources } from "./resource-name.js";

type WhenModel = Extract<ConditionModel, { kind: "when" }>;

/** An expression of a spec inside the file that is compiled to check it. */
interface Probe {
  readonly condition: WhenModel;
  readonly path: string;
  readonly start: number;
}

interface ProbeFile {
  readonly path: string;
  readonly content: string;
  readonly probes: readonly Probe[];
}

/**
 * Type-checks the expressions of all conditions with the emitted types, in memory.
 *
 * `locate` tells where a character of an expression is in its spec.
 */
export async function checkConditions(
  model: ProjectModel,
  files: readonly OutputFile[],
  locate: (condition: ConditionModel, offset: number) => SourcePosition | undefined,
): Promise<Diagnostic[]> {
  const names = nameResources(model.resources);
  const probeFiles = model.controllers
    .map((controller) => probeFileOf(controller, controllerNamesOf(controller, names, model.controllers).folder))
    .filter(({ probes }) => probes.length > 0);
  if (probeFiles.length === 0) return [];
  const { createConditionProgram } = await import("./condition-program.js");
  const program = createConditionProgram([...files, ...probeFiles]);
  return probeFiles.flatMap((file) =>
    file.probes.flatMap((probe) => {
      const length = probe.condition.expression.length;
      const problems = program.problemsIn(file.path, { start: probe.start, end: probe.start + length });
      return problems.map(({ message, start }): Diagnostic => {
        const offset = Math.min(Math.max(start - probe.start, 0), length);
        const position = locate(probe.condition, offset) ?? probe.condition.position;
        return { severity: "error", rule: "when-type", message, position, path: probe.path };
      });
    }),
  );
}

// The names that the expression may use are parameters, typed as the workflow hands them over.
function probeFileOf(controller: ControllerModel, folder: string): ProbeFile {
  const probes: Probe[] = [];
  let content = 'import type * as types from "./types.js";\n';
  for (const dependent of controller.dependents)
    for (const [name, condition] of Object.entries(dependent.conditions)) {
      if (condition.kind !== "when") continue;
      content += `export const probe${probes.length} = ${parametersOf(dependent, condition)} => (\n`;
      const path = `spec.dependents.${dependent.name}.${name}.when`;
      probes.push({ condition, path, start: content.length });
      content += `${condition.expression}\n);\n`;
    }
  return { path: `src/generated/${folder}/conditions.probe.ts`, content, probes };
}

function parametersOf(dependent: DependentModel, { names }: WhenModel): string {
  if (names.length === 0) return "()";
  return `({ ${names.join(", ")} }: types.${dependentNamesOf(dependent).conditionArguments})`;
}
