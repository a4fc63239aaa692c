# java: compiles a source file in its own process and runs it, with its compilers' threads.
programs='java javac'
packages=openjdk-17-jdk-headless
licence=GPL-2.0-only

run() {
  cat >Main.java <<END
import java.util.*;
import java.util.stream.*;
public class Main {
  public static void main(String[] a) throws Exception {
    Map<String, List<Integer>> m = IntStream.range(0, $(part 2000000)).parallel().boxed()
        .collect(Collectors.groupingBy(i -> "k" + i % 1000));
    System.out.println(m.size() + " " + m.get("k7").stream().mapToInt(i -> i).sum());
  }
}
END
  record java -Xmx128m Main.java
}
