// A Spring Boot application with one table.
package demo;

import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class Demo {}
