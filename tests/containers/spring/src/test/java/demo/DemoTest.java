// Spring Boot starts the container and connects by @ServiceConnection, as its documentation shows; rows are written and read.
package demo;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.testcontainers.service.connection.ServiceConnection;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.testcontainers.cassandra.CassandraContainer;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

@Testcontainers
@SpringBootTest(properties = {"spring.cassandra.schema-action=create-if-not-exists", "spring.cassandra.request.timeout=10s"})
class DemoTest {
    @Container
    @ServiceConnection
    static CassandraContainer cassandra = new CassandraContainer("cassandra:5");

    @DynamicPropertySource
    static void keyspace(DynamicPropertyRegistry registry) {
        InetSocketAddress at = cassandra.getContactPoint();
        try (CqlSession session = CqlSession.builder().addContactPoint(at).withLocalDatacenter("datacenter1").build()) {
            session.execute("CREATE KEYSPACE demo WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        }
        registry.add("spring.cassandra.keyspace-name", () -> "demo");
    }

    @Test
    void rowsAreWrittenAndRead(@Autowired People people) {
        people.save(new Person("Ada", 36));
        people.save(new Person("Alan", 41));
        assertThat(people.findById("Ada")).contains(new Person("Ada", 36));
        assertThat(people.count()).isEqualTo(2);
    }
}
