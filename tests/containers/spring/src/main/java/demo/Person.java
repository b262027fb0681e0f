// A row of the table.
package demo;

import org.springframework.data.annotation.Id;
import org.springframework.data.cassandra.core.mapping.Table;

@Table("people")
public record Person(@Id String name, int age) {}
