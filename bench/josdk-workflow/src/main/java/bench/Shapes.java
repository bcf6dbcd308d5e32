package bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The graphs that are measured: the names of the nodes, each with those that it depends on, in an order of creation. */
final class Shapes {

  private Shapes() {}

  static Map<String, List<String>> of(String shape) {
    return switch (shape) {
      case "chain" -> chain(10);
      case "fan" -> fan(100);
      case "grid" -> grid(10);
      default -> throw new IllegalArgumentException("no shape is called " + shape);
    };
  }

  /** Each node depends on the one before. */
  private static Map<String, List<String>> chain(int depth) {
    var nodes = new LinkedHashMap<String, List<String>>();
    for (int i = 0; i < depth; i++) nodes.put("n" + i, i == 0 ? List.of() : List.of("n" + (i - 1)));
    return nodes;
  }

  /** No node depends on another. */
  private static Map<String, List<String>> fan(int width) {
    var nodes = new LinkedHashMap<String, List<String>>();
    for (int i = 0; i < width; i++) nodes.put("n" + i, List.of());
    return nodes;
  }

  /** Each node depends on its left and its upper neighbour. */
  private static Map<String, List<String>> grid(int side) {
    var nodes = new LinkedHashMap<String, List<String>>();
    for (int row = 0; row < side; row++) {
      for (int column = 0; column < side; column++) {
        var needed = new ArrayList<String>();
        if (row > 0) needed.add(name(row - 1, column));
        if (column > 0) needed.add(name(row, column - 1));
        nodes.put(name(row, column), needed);
      }
    }
    return nodes;
  }

  private static String name(int row, int column) {
    return "n" + row + "-" + column;
  }
}
