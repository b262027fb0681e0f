// The table.
package demo;

import org.springframework.data.cassandra.repository.CassandraRepository;

public interface People extends CassandraRepository<Person, String> {}
