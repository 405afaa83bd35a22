module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>, %arg1: tensor<128xi64>) -> (tensor<128xf32>) {
    %0 = "stablehlo.reshape"(%arg0) : (tensor<128x256xf32>) -> tensor<128x256x1xf32>
    %1 = "stablehlo.reshape"(%arg1) : (tensor<128xi64>) -> tensor<128x1xi64>
    %2 = "stablehlo.constant"() {value = dense<-100> : tensor<128x1xi64>} : () -> tensor<128x1xi64>
    %3 = "stablehlo.compare"(%1, %2) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi1>
    %4 = "stablehlo.constant"() {value = dense<0> : tensor<128x1xi64>} : () -> tensor<128x1xi64>
    %5 = "stablehlo.constant"() {value = dense<255> : tensor<128x1xi64>} : () -> tensor<128x1xi64>
    %6 = "stablehlo.compare"(%1, %5) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi1>
    %7 = "stablehlo.compare"(%1, %4) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi1>
    %8 = "stablehlo.and"(%7, %6) : (tensor<128x1xi1>, tensor<128x1xi1>) -> tensor<128x1xi1>
    %9 = "stablehlo.not"(%3) : (tensor<128x1xi1>) -> tensor<128x1xi1>
    %10 = "stablehlo.or"(%9, %8) : (tensor<128x1xi1>, tensor<128x1xi1>) -> tensor<128x1xi1>
    %11 = "stablehlo.maximum"(%1, %4) : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi64>
    %12 = "stablehlo.minimum"(%11, %5) : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi64>
    %13 = "stablehlo.convert"(%12) : (tensor<128x1xi64>) -> tensor<128x1xi32>
    %14 = "stablehlo.constant"() {value = dense<1.0> : tensor<128x1xf32>} : () -> tensor<128x1xf32>
    %15 = "stablehlo.constant"() {value = dense<0.0> : tensor<128x1xf32>} : () -> tensor<128x1xf32>
    %16 = "stablehlo.select"(%3, %14, %15) : (tensor<128x1xi1>, tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %17 = "stablehlo.reshape"(%0) : (tensor<128x256x1xf32>) -> tensor<128x256xf32>
    %30 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<128x256xi32>
    %31 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<128x1xi32>) -> tensor<128x256xi32>
    %32 = "stablehlo.compare"(%30, %31) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<128x256xi32>, tensor<128x256xi32>) -> tensor<128x256xi1>
    %33 = "stablehlo.constant"() {value = dense<0.0> : tensor<128x256xf32>} : () -> tensor<128x256xf32>
    %34 = "stablehlo.select"(%32, %17, %33) : (tensor<128x256xi1>, tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %35 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %37 = "stablehlo.reduce"(%34, %35) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %36 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%36) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<128x256xf32>, tensor<f32>) -> tensor<128xf32>
    %38 = "stablehlo.reshape"(%37) : (tensor<128xf32>) -> tensor<128x1xf32>
    %23 = "stablehlo.multiply"(%16, %38) : (tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %24 = "stablehlo.negate"(%23) : (tensor<128x1xf32>) -> tensor<128x1xf32>
    %25 = "stablehlo.select"(%3, %24, %15) : (tensor<128x1xi1>, tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %26 = "stablehlo.constant"() {value = dense<0x7FC00000> : tensor<128x1xf32>} : () -> tensor<128x1xf32>
    %27 = "stablehlo.select"(%10, %25, %26) : (tensor<128x1xi1>, tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %28 = "stablehlo.reshape"(%27) : (tensor<128x1xf32>) -> tensor<128xf32>
    "func.return"(%28) : (tensor<128xf32>) -> ()
  }
}
